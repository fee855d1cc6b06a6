import type { IntList } from "../kv-cache/int-list.js";

/** Restricts the next token of one sequence. Outlives preemption, as the output does. */
export interface TokenConstraint {
  /** Only an end token can follow. */
  readonly isFinished: boolean;
  /** The tokens allowed next, as in `RowSampling.mask`; undefined if all are. Valid until the next `accept`. */
  readonly mask: Uint32Array | undefined;
  /** The next token if only one is allowed. */
  readonly forcedToken: number | undefined;
  /** Makes the mask of the next token at once, as the first one, which was made when the grammar was compiled. */
  prepare(): void;
  /** Makes the mask of the next token as far as this turn of the event loop has budget for it; returns whether it is made. */
  prepareInTurn(): boolean;
  /** Advances by a token that was sampled under the mask and does not end the sequence. */
  accept(token: number): void;
  /**
   * Truncates a draft of the next tokens where the constraint forbids them or nothing can follow, and makes the masks for
   * `maskAfter`. The constraint itself does not advance.
   */
  cutDraft(draft: IntList): void;
  /** The mask behind the first `count` tokens of the draft passed to `cutDraft` last; `mask` if `count` is 0. */
  maskAfter(count: number): Uint32Array | undefined;
}
