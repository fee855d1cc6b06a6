import { OctavoError } from "@octavo/protocol/errors";
import { Term } from "./term.js";
import { spend } from "../../work.js";

/** Most memory of one store; a new store replaces it for new sequences long before. */
const maxBytes = 256 * 1024 * 1024;
/** A term, its place in the index, and what its key takes beside its characters. */
const termBytes = 320;
const maxOperands = 20_000;

/** Makes terms in normal form; equal terms are one object. */
export class TermAlgebra {
  readonly empty = new Term(0, "empty", false);
  readonly epsilon = new Term(1, "epsilon", true);
  /** All byte strings. */
  readonly anything = new Term(2, "not", true, { left: this.empty });
  readonly #numbers = new Map<string, Map<number, Term>>();
  readonly #strings = new Map<string, Term>();
  #nextId = 3;
  #bytes = 0;

  /** About the memory that the terms and their derivatives take. */
  get memoryBytes(): number {
    return this.#bytes;
  }

  concat(left: Term, right: Term): Term {
    if (left === this.empty || right === this.empty) return this.empty;
    if (left === this.epsilon) return right;
    if (right === this.epsilon) return left;
    if (left.kind === "concat") return this.concat(left.left!, this.concat(left.right!, right));
    if (left.kind === "frame") return this.frame(left.left!, this.concat(left.right!, right));
    if (left.kind === "or" && left.items.some(({ kind }) => kind === "frame"))
      return this.or(left.items.map((item) => this.concat(item, right)));
    return this.#pair("concat", left, right);
  }

  /** The rest of a rule's body, then what follows the rule. */
  frame(body: Term, after: Term): Term {
    if (body === this.empty || after === this.empty) return this.empty;
    if (body === this.epsilon) return after;
    if (after === this.epsilon) return body;
    if (body.kind === "frame") return this.frame(body.left!, this.frame(body.right!, after));
    if (body.kind === "or" && body.items.some(({ kind }) => kind === "frame"))
      return this.or(body.items.map((item) => this.frame(item, after)));
    return this.#pair("frame", body, after);
  }

  or(operands: readonly Term[]): Term {
    const flat = new Set<Term>();
    spend(operands.length);
    for (const operand of operands) {
      if (operand === this.anything) return this.anything;
      if (operand.kind === "or") for (const item of operand.items) flat.add(item);
      else if (operand !== this.empty) flat.add(operand);
    }
    if (flat.size <= 1) return flat.values().next().value ?? this.empty;
    spend(flat.size);
    const merged = this.#factor(flat);
    if (merged.size === 1) return merged.values().next().value!;
    const items = [...merged].toSorted(byId);
    return this.#operands(
      "or",
      items,
      items.some(({ nullable }) => nullable),
    );
  }

  and(operands: readonly Term[]): Term {
    const flat = new Set<Term>();
    spend(operands.length);
    for (const operand of operands) {
      if (operand === this.empty) return this.empty;
      if (operand.kind === "and") for (const item of operand.items) flat.add(item);
      else if (operand !== this.anything) flat.add(operand);
    }
    if (flat.size === 0) return this.anything;
    if (flat.size === 1) return flat.values().next().value!;
    if (flat.has(this.epsilon))
      return [...flat].every(({ nullable }) => nullable) ? this.epsilon : this.empty;
    const items = [...flat].toSorted(byId);
    return this.#operands(
      "and",
      items,
      items.every(({ nullable }) => nullable),
    );
  }

  not(operand: Term): Term {
    if (operand === this.empty) return this.anything;
    if (operand.kind === "not") return operand.left!;
    return this.intern("not", operand.id, () => ({ nullable: !operand.nullable, left: operand }));
  }

  repeat(item: Term, min: number, max: number): Term {
    if (max === 0 || item === this.epsilon) return this.epsilon;
    if (item === this.empty) return min === 0 ? this.epsilon : this.empty;
    const least = item.nullable ? 0 : min;
    if (least === 1 && max === 1) return item;
    if (least === 0 && max === Infinity) {
      if (item.kind === "repeat" && item.min <= 1 && item.max === max) return this.repeat(item.left!, 0, max);
      if (item.kind === "bytes" && item.classes!.every((inside) => inside === 1)) return this.anything;
    }
    return this.#internText("repeat", `${item.id},${least},${max}`, () => ({
      nullable: least === 0,
      left: item,
      min: least,
      max,
    }));
  }

  protected bytes(classes: Uint8Array): Term {
    if (!classes.includes(1)) return this.empty;
    return this.#internText("bytes", classes.join(""), () => ({ nullable: false, classes }));
  }

  /** Merges byte sets into one; sequences with a common end share it. */
  #factor(items: ReadonlySet<Term>): Set<Term> {
    const byEnd = new Map<Term, Term[]>();
    const frames = new Map<Term, Term[]>();
    const sets: Term[] = [];
    const result = new Set<Term>();
    for (const item of items) {
      if (item.kind === "bytes") sets.push(item);
      else if (item.kind === "concat") push(byEnd, item.right!, item);
      else if (item.kind === "frame") push(frames, item.right!, item);
      else result.add(item);
    }
    const [first, ...others] = sets;
    if (first !== undefined) {
      if (others.length === 0) result.add(first);
      else {
        result.add(
          this.bytes(
            first.classes!.map((inside, index) =>
              inside || others.some(({ classes }) => classes![index] === 1) ? 1 : 0,
            ),
          ),
        );
      }
    }
    for (const [groups, join] of [
      [byEnd, (body: Term, end: Term) => this.concat(body, end)],
      [frames, (body: Term, end: Term) => this.frame(body, end)],
    ] as const) {
      for (const [end, group] of groups) {
        if (group.length === 1) result.add(group[0]!);
        else {
          const joined = join(this.or(group.map(({ left }) => left!)), end);
          if (joined.kind === "or") for (const item of joined.items) result.add(item);
          else result.add(joined);
        }
      }
    }
    if (result.size > maxOperands) throw tooComplex();
    return result;
  }

  #pair(kind: "concat" | "frame", left: Term, right: Term): Term {
    return this.intern(kind, left.id * 2 ** 26 + right.id, () => ({
      nullable: left.nullable && right.nullable,
      left,
      right,
    }));
  }

  #operands(kind: "or" | "and", items: readonly Term[], nullable: boolean): Term {
    return this.#internText(kind, items.map(({ id }) => id).join(), () => ({ nullable, items }));
  }

  protected intern(kind: Term["kind"], key: number, make: () => TermParts): Term {
    let known = this.#numbers.get(kind);
    if (known === undefined) {
      known = new Map();
      this.#numbers.set(kind, known);
    }
    let term = known.get(key);
    if (term === undefined) {
      term = this.#make(kind, make(), 0);
      known.set(key, term);
    }
    return term;
  }

  #internText(kind: Term["kind"], key: string, make: () => TermParts): Term {
    const whole = `${kind}:${key}`;
    let term = this.#strings.get(whole);
    if (term === undefined) {
      term = this.#make(kind, make(), whole.length);
      this.#strings.set(whole, term);
    }
    return term;
  }

  /** Counts memory that is about to be taken. */
  protected grow(bytes: number): void {
    if (this.#bytes + bytes > maxBytes) throw tooComplex();
    this.#bytes += bytes;
  }

  #make(kind: Term["kind"], { nullable, ...parts }: TermParts, keyLength: number): Term {
    this.grow(termBytes + keyLength + 16 * (parts.items?.length ?? 0) + (parts.classes?.length ?? 0));
    return new Term(this.#nextId++, kind, nullable, parts);
  }
}

type TermParts = { readonly nullable: boolean } & NonNullable<ConstructorParameters<typeof Term>[3]>;

function byId(a: Term, b: Term): number {
  return a.id - b.id;
}

function push(groups: Map<Term, Term[]>, key: Term, item: Term): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [item]);
  else group.push(item);
}

export function tooComplex(): OctavoError {
  return new OctavoError(
    "invalid_request",
    "The grammar is too ambiguous: following the text would take more work than is allowed. Give a simpler one.",
  );
}
