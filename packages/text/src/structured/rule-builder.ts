import { OctavoError } from "@octavo/protocol/errors";
import { type AutomatonTable, type Node, nothing, type RuleSet } from "./node.js";

/** Most rules of one grammar; real schemas need hundreds. */
const maxRules = 50_000;
/** Most states of one grammar's table automata, one KiB each; a thread's heap limit does not count them. */
const maxTableStates = 16_384;

/** Collects the rules of a front end; a rule may be referenced before it is defined. */
export class RuleBuilder {
  readonly #tables = new Map<string, AutomatonTable>();
  #numTableStates = 0;
  readonly #rules: Node[] = [];
  readonly #names: string[] = [];
  readonly #known = new Map<string, number>();

  /** The rule under `key`, made by `make` on first use. */
  rule(key: string, name: string, make: () => Node): Node {
    let index = this.#known.get(key);
    if (index === undefined) {
      index = this.reserve(name);
      this.#known.set(key, index);
      this.define(index, make());
    }
    return { op: "rule", rule: index };
  }

  /** Rules of one name, each made by `make` from its key on first use; they may refer to each other. */
  family<Key extends readonly unknown[]>(name: string, make: (...key: Key) => Node): (...key: Key) => Node {
    const known = new Map<string, Node>();
    return (...key) => {
      const shown = JSON.stringify(key);
      let node = known.get(shown);
      if (node === undefined) {
        const rule = this.reserve(name);
        node = { op: "rule", rule };
        known.set(shown, node);
        this.define(rule, make(...key));
      }
      return node;
    };
  }

  /** A rule to be defined later. */
  reserve(name: string): number {
    if (this.#rules.length >= maxRules) {
      throw new OctavoError(
        "invalid_request",
        `The grammar needs more than ${maxRules} rules; give a simpler one.`,
      );
    }
    this.#names.push(name);
    return this.#rules.push(nothing) - 1;
  }

  /** The automaton of `numStates` states under `key`, made by `make` on first use. */
  table(key: string, numStates: number, make: () => AutomatonTable): AutomatonTable {
    let table = this.#tables.get(key);
    if (table === undefined) {
      this.countTableStates(numStates);
      table = make();
      this.#tables.set(key, table);
    }
    return table;
  }

  /** Counts states before they are allocated. Throws `invalid_request` when there are too many. */
  countTableStates(numStates: number): void {
    this.#numTableStates += numStates;
    if (this.#numTableStates <= maxTableStates) return;
    throw new OctavoError(
      "invalid_request",
      `The grammar's triggers and divisors need automata of more than ${maxTableStates} states; give fewer or smaller ones.`,
    );
  }

  define(index: number, node: Node): void {
    this.#rules[index] = node;
  }

  finish(root: Node): RuleSet {
    const index = this.reserve("root");
    this.define(index, root);
    return { rules: this.#rules, names: this.#names, root: index };
  }
}
