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
}
