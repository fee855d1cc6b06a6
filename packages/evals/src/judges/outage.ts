import type { ServerFailure } from "../http/server-failure.js";

interface OutagePatience {
  /** A judge that has failed for so long, without an answer in between, is given up. */
  readonly patienceMs: number;
  /** How often one that was given up is tried again. */
  readonly probeIntervalMs: number;
}

/** Fewer failures in a row are bad luck, however long they took. */
const leastFailures = 3;

/** Knows whether a judge is down: a run without its judge should end soon, and one whose judge restarts should not lose cases. */
export class Outage {
  readonly #patience: OutagePatience;
  #numFailures = 0;
  #sinceMs = 0;
  #lastTryMs = 0;
  #last: ServerFailure | undefined;

  constructor(patience: OutagePatience) {
    this.#patience = patience;
  }

  /** Why requests fail at once for now; undefined where one may be sent. The next caller makes the trial request. */
  refusal(): ServerFailure | undefined {
    const nowMs = performance.now();
    if (this.hasGivenUp && nowMs - this.#lastTryMs < this.#patience.probeIntervalMs) return this.#last;
    this.#lastTryMs = nowMs;
    return undefined;
  }

  get hasGivenUp(): boolean {
    return (
      this.#numFailures >= leastFailures && performance.now() - this.#sinceMs >= this.#patience.patienceMs
    );
  }

  failed(failure: ServerFailure): void {
    if (this.#numFailures === 0) this.#sinceMs = performance.now();
    this.#numFailures += 1;
    this.#last = failure;
  }

  /** It answered, whatever it said. */
  ended(): void {
    this.#numFailures = 0;
  }
}
