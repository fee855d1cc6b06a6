import type { TermStore } from "./term-store.js";
import type { Term } from "./term.js";
import { numPlainStates, plainMoves } from "./plain-text.js";

/** Finds after which states any plain text of a given length may follow, so that plain tokens are not checked one by one. */
export class PlainRuns {
  readonly #store: TermStore;
  /** For each state within a plain character: the byte classes that continue it, and the next state. */
  readonly #moves: readonly (readonly { readonly byteClass: number; readonly next: number }[])[];

  constructor(store: TermStore) {
    this.#store = store;
    this.#moves = Array.from({ length: numPlainStates }, (_, state) =>
      plainMoves[state]!.flatMap(({ first, last, next }) => {
        const classes = new Set(store.classes.of.subarray(first, last + 1));
        return Array.from(classes, (byteClass) => ({ byteClass, next }));
      }),
    );
  }

  /**
   * Whether every text of 1 to `length` plain characters may follow `term`, never passing a place where the term could
   * be over.
   */
  allows(term: Term, length: number): boolean {
    if (length <= term.plainAtLeast) return true;
    if (length >= term.plainBelow) return false;
    const allowed = this.#characters(term, 0, new Set(), new Set()) ?? [];
    const result = allowed.length > 0 && allowed.every((rest) => this.#mayFollow(rest, length));
    if (result) term.plainAtLeast = length;
    else term.plainBelow = length;
    return result;
  }

  #mayFollow(rest: Term, length: number): boolean {
    return !rest.nullable && (length === 1 || this.allows(rest, length - 1));
  }

  /** Where the plain characters lead; undefined when some are not allowed. */
  #characters(term: Term, state: number, found: Set<Term>, seen: Set<string>): Term[] | undefined {
    for (const { byteClass, next } of this.#moves[state]!) {
      const rest = this.#store.step(term, byteClass);
      if (rest === this.#store.empty || (next !== 0 && rest.nullable)) return undefined;
      if (next === 0) found.add(rest);
      else {
        const key = `${next},${rest.id}`;
        if (seen.has(key)) continue;
        seen.add(key);
        if (this.#characters(rest, next, found, seen) === undefined) return undefined;
      }
    }
    return [...found];
  }
}
