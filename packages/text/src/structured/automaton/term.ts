/**
 * Terms are what is left of a grammar to be matched; the derivative of a term by a byte is what is left after it
 * (Brzozowski 1964; Owens, Reppy and Turon 2009). A `frame` is a sequence whose first part is the rest of a rule's body
 * and whose second part is what its caller expects after it: nested frames are the stack of a pushdown automaton, and an
 * `or` of them is the set of stacks that are still possible.
 */
type TermKind =
  | "empty" // matches nothing
  | "epsilon" // matches the empty text
  | "bytes"
  | "text"
  | "concat"
  | "frame"
  | "or"
  | "and"
  | "not"
  | "repeat"
  | "call"
  | "automaton";

/** Operands that begin with a byte of one class only, and those that may begin with several. */
export interface OperandStarts {
  readonly byClass: ReadonlyMap<number, readonly Term[]>;
  readonly others: readonly Term[];
}

/** One shape for all kinds, so that the hot paths see one hidden class. */
export class Term {
  readonly id: number;
  readonly kind: TermKind;
  readonly nullable: boolean;
  /** concat, frame: both parts. repeat, not: the first. */
  readonly left: Term | undefined;
  readonly right: Term | undefined;
  /** or, and: operands by ascending id. */
  readonly items: readonly Term[];
  /** bytes: 1 for each byte class that it holds. */
  readonly classes: Uint8Array | undefined;
  /** repeat: bounds. text: `min` is the class of the next byte, `max` the text. call: `min` is the rule. automaton: `min` is the state, `max` the table. */
  readonly min: number;
  readonly max: number;
  /** text: the place of the next byte. */
  readonly at: number;
  /** Derivatives by byte class, as far as they were computed. */
  next: (Term | undefined)[] | undefined;
  /** and, not: derivatives before it is known whether anything can match them. */
  raw: (Term | undefined)[] | undefined;
  /** and, not: whether anything can match; undefined before it was asked. */
  alive: boolean | undefined;
  /** or: operands by the class of their first byte, once there were enough of them to look them up. */
  starts: OperandStarts | undefined;
  /** Longest run of plain characters known to be allowed, and shortest known not to be; see `PlainRuns`. */
  plainAtLeast = 0;
  plainBelow = Number.POSITIVE_INFINITY;

  constructor(
    id: number,
    kind: TermKind,
    nullable: boolean,
    parts: {
      readonly left?: Term | undefined;
      readonly right?: Term | undefined;
      readonly items?: readonly Term[];
      readonly classes?: Uint8Array;
      readonly min?: number;
      readonly max?: number;
      readonly at?: number;
    } = {},
  ) {
    this.id = id;
    this.kind = kind;
    this.nullable = nullable;
    this.left = parts.left;
    this.right = parts.right;
    this.items = parts.items ?? [];
    this.classes = parts.classes;
    this.min = parts.min ?? 0;
    this.max = parts.max ?? 0;
    this.at = parts.at ?? 0;
    this.next = undefined;
    this.raw = undefined;
    this.alive = undefined;
    this.starts = undefined;
  }
}
