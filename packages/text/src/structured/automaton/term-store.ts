import { OctavoError } from "@octavo/protocol/errors";
import { type AutomatonTable, type ByteClasses, hasByte, type Node, type RuleSet } from "../node.js";
import { analyseRules } from "../analyse.js";
import { operandsAt } from "./operand-starts.js";
import { Term } from "./term.js";

/** Derivatives that one operation may take: a few hundred milliseconds of work in the worst case. */
const maxWork = 400_000;
/** Terms of one store at most; a new store is begun long before where sequences can be told to start on it. */
const maxTerms = 2_000_000;
/** States that the search for a match of an intersection may visit. */
const maxVisited = 20_000;
const maxOperands = 20_000;

/** Makes terms, each once, in a normal form, and takes their derivatives, each once. */
export class TermStore {
  readonly empty = new Term(0, "empty", false);
  readonly epsilon = new Term(1, "epsilon", true);
  /** All byte strings. */
  readonly anything = new Term(2, "not", true, { left: this.empty });
  readonly classes: ByteClasses;
  readonly #rules: readonly Node[];
  readonly #nullable: readonly boolean[];
  readonly #bodies: (Term | undefined)[] = [];
  readonly #tables: AutomatonTable[] = [];
  readonly #texts: Uint8Array[] = [];
  readonly #textNumbers = new Map<string, number>();
  readonly #numbers = new Map<string, Map<number, Term>>();
  readonly #strings = new Map<string, Term>();
  readonly #built = new Map<Node, Term>();
  #nextId = 3;
  #work = 0;

  constructor({ rules, analysis = analyseRules(rules) }: RuleSet) {
    this.#rules = rules;
    this.#nullable = analysis.nullable;
    this.classes = analysis.classes;
  }

  /** Allows the next operation its share of work. */
  startWork(): void {
    this.#work = 0;
  }

  get numTerms(): number {
    return this.#nextId;
  }

  /** Derivatives taken since `startWork`. */
  get work(): number {
    return this.#work;
  }

  rule(index: number): Term {
    return this.#intern("call", index, () => ({ nullable: this.#nullable[index]!, min: index }));
  }

  /** What is left of `term` after a byte of class `byteClass`; `empty` when nothing can be. */
  step(term: Term, byteClass: number): Term {
    const known = term.next?.[byteClass];
    if (known !== undefined) return known;
    const result = this.#alive(this.#derive(term, byteClass));
    (term.next ??= [])[byteClass] = result;
    return result;
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

  /** The rest of a rule's body, and what follows the rule. */
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
    for (const operand of operands) {
      if (operand === this.anything) return this.anything;
      if (operand.kind === "or") for (const item of operand.items) flat.add(item);
      else if (operand !== this.empty) flat.add(operand);
    }
    if (flat.size <= 1) return flat.values().next().value ?? this.empty;
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
    return this.#intern("not", operand.id, () => ({ nullable: !operand.nullable, left: operand }));
  }

  repeat(item: Term, min: number, max: number): Term {
    if (max === 0 || item === this.epsilon) return this.epsilon;
    if (item === this.empty) return min === 0 ? this.epsilon : this.empty;
    const least = item.nullable ? 0 : min;
    if (least === 1 && max === 1) return item;
    if (least === 0 && max === Number.POSITIVE_INFINITY) {
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

  /** A node as a term. Nodes that appear in several places are made once. */
  build(node: Node): Term {
    let term = this.#built.get(node);
    if (term === undefined) {
      term = this.#alive(this.#build(node));
      this.#built.set(node, term);
    }
    return term;
  }

  /** Makes the body of a rule part by part, so that a caller can pause between them. */
  *building(rule: number): Generator<void, void> {
    const node = this.#rules[rule]!;
    // A rule that is another one alone; no rule begins with itself, so that this comes to an end.
    if (node.op === "rule") yield* this.building(node.rule);
    yield* this.#building(node);
    this.#body(rule);
  }

  *#building(node: Node): Generator<void, void> {
    if (this.#built.has(node)) return;
    if (node.op === "repeat" || node.op === "not") yield* this.#building(node.item);
    else if (node.op === "sequence" || node.op === "choice" || node.op === "all")
      for (const item of node.items) yield* this.#building(item);
    this.build(node);
    yield;
  }

  #build(node: Node): Term {
    switch (node.op) {
      case "bytes": {
        const { count, example } = this.classes;
        return this.#bytes(
          Uint8Array.from({ length: count }, (_, index) => (hasByte(node.set, example[index]!) ? 1 : 0)),
        );
      }
      case "text":
        return this.#text(this.#textNumber(node.bytes), 0);
      case "sequence":
        return node.items.reduceRight<Term>(
          (rest, item) => this.concat(this.build(item), rest),
          this.epsilon,
        );
      case "choice":
        return this.or(node.items.map((item) => this.build(item)));
      case "repeat":
        return this.repeat(this.build(node.item), node.min, node.max);
      case "rule":
        return this.rule(node.rule);
      case "all":
        return this.and(node.items.map((item) => this.build(item)));
      case "not":
        return this.not(this.build(node.item));
      case "automaton":
        return this.#automaton(node.table, node.state);
    }
  }

  /** What is left of a text; its terms are made one by one, as far as it is followed. */
  #text(number: number, at: number): Term {
    const bytes = this.#texts[number]!;
    if (at === bytes.length) return this.epsilon;
    return this.#intern("text", number * 2 ** 32 + at, () => ({
      nullable: false,
      min: this.classes.of[bytes[at]!]!,
      max: number,
      at,
    }));
  }

  #textNumber(bytes: Uint8Array): number {
    const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    let number = this.#textNumbers.get(content);
    if (number === undefined) {
      number = this.#texts.push(bytes) - 1;
      this.#textNumbers.set(content, number);
    }
    return number;
  }

  #bytes(classes: Uint8Array): Term {
    if (!classes.includes(1)) return this.empty;
    return this.#internText("bytes", classes.join(""), () => ({ nullable: false, classes }));
  }

  #automaton(table: AutomatonTable, state: number): Term {
    let index = this.#tables.indexOf(table);
    if (index < 0) index = this.#tables.push(table) - 1;
    return this.#automatonState(index, state);
  }

  #automatonState(table: number, state: number): Term {
    return this.#intern("automaton", table * 2 ** 32 + state, () => ({
      nullable: this.#tables[table]!.accepts[state] === 1,
      min: state,
      max: table,
    }));
  }

  #body(rule: number): Term {
    return (this.#bodies[rule] ??= this.build(this.#rules[rule]!));
  }

  #derive(term: Term, byteClass: number): Term {
    this.#work += 1;
    if (this.#work > maxWork) throw tooComplex();
    switch (term.kind) {
      case "empty":
      case "epsilon":
        return this.empty;
      case "bytes":
        return term.classes![byteClass] === 1 ? this.epsilon : this.empty;
      case "text":
        return term.min === byteClass ? this.#text(term.max, term.at + 1) : this.empty;
      case "call":
        return this.step(this.#body(term.min), byteClass);
      case "concat": {
        const { left, right } = term;
        const first = this.step(left!, byteClass);
        const taken = left!.kind === "call" ? this.frame(first, right!) : this.concat(first, right!);
        return left!.nullable ? this.or([taken, this.step(right!, byteClass)]) : taken;
      }
      case "frame": {
        const { left, right } = term;
        const taken = this.frame(this.step(left!, byteClass), right!);
        return left!.nullable ? this.or([taken, this.step(right!, byteClass)]) : taken;
      }
      case "or":
        return this.or(operandsAt(term, byteClass).map((item) => this.step(item, byteClass)));
      case "and": {
        const items: Term[] = [];
        for (const item of term.items) {
          const rest = item.kind === "not" ? this.#rawStep(item, byteClass) : this.step(item, byteClass);
          if (rest === this.empty) return this.empty;
          items.push(rest);
        }
        return this.and(items);
      }
      case "not":
        return term === this.anything ? term : this.not(this.step(term.left!, byteClass));
      case "repeat": {
        const { left, min, max } = term;
        const rest = this.repeat(left!, Math.max(0, min - 1), max - 1);
        const first = this.step(left!, byteClass);
        return left!.kind === "call" ? this.frame(first, rest) : this.concat(first, rest);
      }
      case "automaton": {
        const byte = this.classes.example[byteClass]!;
        const state = this.#tables[term.max]!.next[term.min * 256 + byte]!;
        return state < 0 ? this.empty : this.#automatonState(term.max, state);
      }
    }
  }

  #rawStep(term: Term, byteClass: number): Term {
    const known = term.raw?.[byteClass];
    if (known !== undefined) return known;
    const result = this.#derive(term, byteClass);
    (term.raw ??= [])[byteClass] = result;
    return result;
  }

  /** `empty` in place of an intersection or complement that nothing matches. */
  #alive(term: Term): Term {
    if (term.kind !== "and" && term.kind !== "not") return term;
    term.alive ??= this.#findMatch(term);
    return term.alive ? term : this.empty;
  }

  /** Depth-first search for a nullable state; what lies on the way to one is alive too. */
  #findMatch(start: Term): boolean {
    const visited = new Set<Term>([start]);
    const path: { readonly term: Term; next: number }[] = [{ term: start, next: 0 }];
    for (let place = path.at(-1); place !== undefined; place = path.at(-1)) {
      const { term } = place;
      const isOpen = term.kind === "and" || term.kind === "not";
      if (term.nullable || (isOpen ? term.alive === true : term !== this.empty)) {
        for (const { term: onTheWay } of path) onTheWay.alive = true;
        return true;
      }
      if (!isOpen || term.alive === false || place.next === this.classes.count) {
        path.pop();
        continue;
      }
      const rest = this.#rawStep(term, place.next);
      place.next += 1;
      if (visited.has(rest)) continue;
      visited.add(rest);
      if (visited.size > maxVisited) throw tooComplex();
      path.push({ term: rest, next: 0 });
    }
    for (const term of visited) if (term.kind === "and" || term.kind === "not") term.alive = false;
    return false;
  }

  /** Byte sets become one; sequences that end alike share their end. */
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
          this.#bytes(
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
    return this.#intern(kind, left.id * 2 ** 26 + right.id, () => ({
      nullable: left.nullable && right.nullable,
      left,
      right,
    }));
  }

  #operands(kind: "or" | "and", items: readonly Term[], nullable: boolean): Term {
    return this.#internText(kind, items.map(({ id }) => id).join(), () => ({ nullable, items }));
  }

  #intern(kind: Term["kind"], key: number, make: () => TermParts): Term {
    let known = this.#numbers.get(kind);
    if (known === undefined) {
      known = new Map();
      this.#numbers.set(kind, known);
    }
    let term = known.get(key);
    if (term === undefined) {
      term = this.#make(kind, make());
      known.set(key, term);
    }
    return term;
  }

  #internText(kind: Term["kind"], key: string, make: () => TermParts): Term {
    const whole = `${kind}:${key}`;
    let term = this.#strings.get(whole);
    if (term === undefined) {
      term = this.#make(kind, make());
      this.#strings.set(whole, term);
    }
    return term;
  }

  #make(kind: Term["kind"], { nullable, ...parts }: TermParts): Term {
    if (this.#nextId >= maxTerms) throw tooComplex();
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
