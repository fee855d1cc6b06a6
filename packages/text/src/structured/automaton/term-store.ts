import { type AutomatonTable, type ByteClasses, hasByte, type Node, type RuleSet } from "../node.js";
import { analyseRules } from "../analyse.js";
import { operandsAt } from "./operand-starts.js";
import { TermAlgebra, tooComplex } from "./term-algebra.js";
import type { Term } from "./term.js";
import { spend } from "../../work.js";

/** Most derivatives in one operation: a few hundred milliseconds in the worst case. */
export const maxWork = 400_000;
/** States that the search for a match of an intersection may visit. */
const maxVisited = 20_000;

/** The terms of one grammar and their derivatives, each taken once. */
export class TermStore extends TermAlgebra {
  readonly classes: ByteClasses;
  readonly #rules: readonly Node[];
  readonly #nullable: readonly boolean[];
  readonly #bodies: (Term | undefined)[] = [];
  readonly #tables: AutomatonTable[] = [];
  readonly #texts: Uint8Array[] = [];
  readonly #textNumbers = new Map<string, number>();
  readonly #built = new Map<Node, Term>();
  #work = 0;

  constructor({ rules, analysis = analyseRules(rules) }: RuleSet) {
    super();
    this.#rules = rules;
    this.#nullable = analysis.nullable;
    this.classes = analysis.classes;
  }

  /** Resets the work limit for the next operation. */
  startWork(): void {
    this.#work = 0;
  }

  /** Derivatives taken since `startWork`. */
  get work(): number {
    return this.#work;
  }

  rule(index: number): Term {
    return this.intern("call", index, () => ({ nullable: this.#nullable[index]!, min: index }));
  }

  /** What is left of `term` after a byte of class `byteClass`; `empty` when nothing can be. */
  step(term: Term, byteClass: number): Term {
    const known = term.next?.[byteClass];
    if (known !== undefined) return known;
    const result = this.#alive(this.#derive(term, byteClass));
    (term.next ??= this.#derivatives())[byteClass] = result;
    return result;
  }

  #derivatives(): (Term | undefined)[] {
    this.grow(48 + 8 * this.classes.count);
    return Array.from({ length: this.classes.count });
  }

  /** A node as a term; a node that appears in several places is converted once. */
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
    // A rule that is just another rule; as no rule begins with itself, this recursion ends.
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
        return this.bytes(
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

  /** The rest of a text from `at`; its terms are made one by one as it is matched. */
  #text(number: number, at: number): Term {
    const bytes = this.#texts[number]!;
    if (at === bytes.length) return this.epsilon;
    return this.intern("text", number * 2 ** 32 + at, () => ({
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

  #automaton(table: AutomatonTable, state: number): Term {
    let index = this.#tables.indexOf(table);
    if (index < 0) index = this.#tables.push(table) - 1;
    return this.#automatonState(index, state);
  }

  #automatonState(table: number, state: number): Term {
    return this.intern("automaton", table * 2 ** 32 + state, () => ({
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
    spend(1);
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
    (term.raw ??= this.#derivatives())[byteClass] = result;
    return result;
  }

  /** `empty` in place of an intersection or complement that nothing matches. */
  #alive(term: Term): Term {
    if (term.kind !== "and" && term.kind !== "not") return term;
    term.alive ??= this.#findMatch(term);
    return term.alive ? term : this.empty;
  }

  /** Depth-first search for a nullable state; all terms on the path to it are alive too. */
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
}
