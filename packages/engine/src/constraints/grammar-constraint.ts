import { OctavoError } from "@octavo/protocol/errors";
import type { IntList } from "../kv-cache/int-list.js";
import type { TokenConstraint } from "./token-constraint.js";
import { takeFromTurn, turnHasBudget } from "./turn-budget.js";
import type { Grammar, Matcher } from "@octavo/text/structured/grammar";

/**
 * Keeps one sequence to a grammar: tracks its position and the tokens allowed next. End tokens are allowed where the grammar is
 * complete and nowhere else. Outlives preemption, as the output does.
 */
export class GrammarConstraint implements TokenConstraint {
  readonly #matcher: Matcher;
  readonly #endTokens: readonly number[];
  readonly #mask: Uint32Array;
  #isFresh = false;
  /** The rest of the work on the next token's mask. */
  #making: Generator<number, void> | undefined;
  /** Masks behind a draft's first, second, ... token. */
  readonly #draftMasks: Uint32Array[] = [];

  constructor(grammar: Grammar, endTokens: Iterable<number>) {
    this.#matcher = grammar.start();
    this.#endTokens = [...endTokens];
    this.#mask = new Uint32Array(grammar.maskWords);
  }

  /** Only an end token can follow. */
  get isFinished(): boolean {
    return this.#matcher.isFinished;
  }

  prepareInTurn(): boolean {
    if (this.#isFresh) return true;
    this.#making ??= this.#matcher.preparing();
    if (!advanced(this.#making)) return false;
    this.prepare();
    return true;
  }

  /** Throws `invalid_request` when the grammar is too ambiguous to follow. */
  prepare(): void {
    if (this.#isFresh) return;
    this.#fill(this.#mask);
    this.#isFresh = true;
    this.#making = undefined;
  }

  /** Also truncates the draft where following it takes more work than this turn of the event loop has left. */
  cutDraft(draft: IntList): void {
    const before = this.#matcher.numAccepted;
    let length = 0;
    try {
      while (length < draft.length && this.#matcher.accept(draft.at(length)) && !this.#matcher.isFinished) {
        if (!advanced(this.#matcher.preparing())) break;
        this.#fill((this.#draftMasks[length] ??= new Uint32Array(this.#mask.length)));
        length += 1;
      }
    } catch (thrown) {
      // A draft must not fail a request that may never go there.
      if (OctavoError.from(thrown).code !== "invalid_request") throw thrown;
    } finally {
      this.#matcher.rollback(this.#matcher.numAccepted - before);
    }
    draft.truncate(length);
  }

  maskAfter(count: number): Uint32Array {
    return count === 0 ? this.mask : this.#draftMasks[count - 1]!;
  }

  #fill(mask: Uint32Array): void {
    this.#matcher.fillMask(mask);
    const { isComplete } = this.#matcher;
    for (const token of this.#endTokens) {
      const bit = 1 << (token & 31);
      if (isComplete) mask[token >> 5]! |= bit;
      else mask[token >> 5]! &= ~bit;
    }
  }

  /** Valid until the next `accept`. */
  get mask(): Uint32Array {
    this.prepare();
    return this.#mask;
  }

  /** The next token if the grammar allows only one. */
  get forcedToken(): number | undefined {
    const token = this.#matcher.forcedToken();
    return token !== undefined && this.#endTokens.includes(token) ? undefined : token;
  }

  /** Advances by a token that was sampled under the mask and does not end the sequence. */
  accept(token: number): void {
    if (!this.#matcher.accept(token))
      throw new OctavoError(
        "internal_error",
        `Token ${token} was sampled although the grammar does not allow it.`,
      );
    this.#isFresh = false;
    this.#making = undefined;
  }
}

/** Goes on with a mask while the turn has budget; returns whether it is made. */
function advanced(making: Generator<number, void>): boolean {
  while (turnHasBudget()) {
    const { done, value } = making.next();
    if (done === true) return true;
    takeFromTurn(value);
  }
  return false;
}
