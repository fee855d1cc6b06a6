/** How one request ended. Times are `performance.now()` ms. */
export interface RequestOutcome {
  readonly index: number;
  /** When the arrival process wanted it sent; equal to `sentMs` in a closed loop. */
  readonly scheduledMs: number;
  readonly sentMs: number;
  readonly endedMs: number;
  /** Arrival of each piece of output, first one included. */
  readonly pieceMs: readonly number[];
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  /** From the server's usage; the number of pieces when it sends none. */
  readonly completionTokens: number;
  readonly failure: RequestFailure | undefined;
}

export type FailureKind =
  /** No connection, or one that broke before an answer began. */
  | "connection"
  | "timeout"
  /** 429 or 503. */
  | "refused"
  /** Any other status of 400 or above. */
  | "http"
  /** An error event inside the stream. */
  | "stream_error"
  /** The stream ended without `[DONE]`. */
  | "truncated";

export interface RequestFailure {
  readonly kind: FailureKind;
  readonly message: string;
}
