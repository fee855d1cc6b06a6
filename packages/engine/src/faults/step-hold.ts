import { setTimeout as sleep } from "node:timers/promises";

/** Timers are this coarse: less is owed to a later step. */
const minMs = 1;

/** Waits that one fault asks for between a step's computing and its results. */
export class StepHold {
  #end = new AbortController();
  #owedMs = 0;

  /** Waits `ms`, on average over steps, or until `release`. Resolves with the ms that it took, 0 where they are only owed. */
  async owe(ms: number): Promise<number> {
    this.#owedMs += ms;
    if (this.#owedMs < minMs) return 0;
    const startMs = performance.now();
    const { signal } = this.#end;
    await this.wait(this.#owedMs);
    const tookMs = performance.now() - startMs;
    // what was owed is forgotten where the wait was ended
    if (!signal.aborted) this.#owedMs -= tookMs;
    return tookMs;
  }

  async wait(ms: number): Promise<void> {
    const { signal } = this.#end;
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }

  /** Ends the wait under way, and forgets what is owed. */
  release(): void {
    this.#owedMs = 0;
    this.#end.abort();
    this.#end = new AbortController();
  }
}
