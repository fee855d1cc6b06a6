import { setTimeout as sleep } from "node:timers/promises";

/** Timer resolution: shorter waits accumulate over steps. */
const minMs = 1;

/** The delays of one fault between a step's computing and its results. */
export class StepHold {
  #end = new AbortController();
  #owedMs = 0;

  /** Waits `ms`, on average over steps, or until `release`. Resolves with the ms waited, 0 if they are only accumulated. */
  async owe(ms: number): Promise<number> {
    this.#owedMs += ms;
    if (this.#owedMs < minMs) return 0;
    const startMs = performance.now();
    const { signal } = this.#end;
    await this.wait(this.#owedMs);
    const tookMs = performance.now() - startMs;
    // `release` has dropped what was owed.
    if (!signal.aborted) this.#owedMs -= tookMs;
    return tookMs;
  }

  async wait(ms: number): Promise<void> {
    const { signal } = this.#end;
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }

  /** Ends the current wait and drops what is owed. */
  release(): void {
    this.#owedMs = 0;
    this.#end.abort();
    this.#end = new AbortController();
  }
}
