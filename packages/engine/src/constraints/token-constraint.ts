import type { IntList } from "../kv-cache/int-list.js";

/** What bounds the next token of one sequence. Outlives preemption, as the output does. */
export interface TokenConstraint {
  /** Nothing but the end can follow. */
  readonly isFinished: boolean;
  /** Tokens that may come next, as in `RowSampling.mask`; undefined where all may. Valid until the next token is taken. */
  readonly mask: Uint32Array | undefined;
  /** The token that must come next, when there is no choice. */
  readonly forcedToken: number | undefined;
  /** Makes the mask of the next token. */
  prepare(): void;
  /** Takes note of a token that was sampled under the mask and does not end the sequence. */
  accept(token: number): void;
  /**
   * Cuts a draft, guesses at the next tokens, where the constraint does not allow it or nothing can follow it, and makes
   * what `maskAfter` gives. The sequence stays where it is.
   */
  cutDraft(draft: IntList): void;
  /** The mask behind the first `count` tokens of the draft that was cut last; behind none of them, `mask`. */
  maskAfter(count: number): Uint32Array | undefined;
}
