interface OpenTrace {
  lastMs: number;
  isOk: boolean;
  verdict: boolean | undefined;
}

/** Outcome of one request of a trace. */
export interface CallOutcome {
  readonly isOk: boolean;
  /** From an evaluation. */
  readonly verdict: boolean | undefined;
}

/** A trace without requests for this long is complete. */
const quietMs = 3_600_000;
const mostOpen = 100_000;

/**
 * Counts traces and those that succeeded: all verdicts on a trace must be good; without verdicts its last
 * request must have succeeded. Requests come nearly ordered by time, so only the latest traces are kept.
 */
export class TraceOutcomes {
  readonly #open = new Map<string, OpenTrace>();
  #traces = 0;
  #successful = 0;

  /** A request without a trace counts as a trace. */
  add(traceId: string | undefined, timeMs: number, { isOk, verdict }: CallOutcome): void {
    if (traceId === undefined) {
      this.#close({ lastMs: timeMs, isOk, verdict });
      return;
    }
    const known = this.#open.get(traceId);
    this.#open.delete(traceId);
    this.#open.set(traceId, {
      lastMs: Math.max(timeMs, known?.lastMs ?? timeMs),
      isOk: known === undefined || timeMs >= known.lastMs ? isOk : known.isOk,
      verdict: known?.verdict === undefined ? verdict : known.verdict && (verdict ?? true),
    });
    for (const [oldest, trace] of this.#open) {
      if (this.#open.size <= mostOpen && timeMs - trace.lastMs < quietMs) break;
      this.#open.delete(oldest);
      this.#close(trace);
    }
  }

  counts(): { readonly traces: number; readonly successfulTraces: number } {
    for (const trace of this.#open.values()) this.#close(trace);
    this.#open.clear();
    return { traces: this.#traces, successfulTraces: this.#successful };
  }

  #close({ isOk, verdict }: OpenTrace): void {
    this.#traces += 1;
    if (verdict ?? isOk) this.#successful += 1;
  }
}
