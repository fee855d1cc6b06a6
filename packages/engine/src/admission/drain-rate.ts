const intervalsKept = 32;
const maxSeconds = 60;

/** The recent completion rate of requests, for estimating when a refused request may be retried. */
export class DrainRate {
  /** Completion times of the latest requests, oldest first. */
  readonly #finishedMs: number[] = [];

  get isKnown(): boolean {
    return this.#finishedMs.length >= 2;
  }

  note(nowMs: number): void {
    this.#finishedMs.push(nowMs);
    if (this.#finishedMs.length > intervalsKept) this.#finishedMs.shift();
  }

  forget(): void {
    this.#finishedMs.length = 0;
  }

  /** Estimated time to complete `backlog` requests at the recent rate, from 1 s to 60 s; 1 s when the rate is unknown. */
  secondsFor(backlog: number, nowMs: number): number {
    const [oldest] = this.#finishedMs;
    const newest = this.#finishedMs.at(-1);
    if (oldest === undefined || newest === undefined || !this.isKnown) return 1;
    const numFinished = this.#finishedMs.length;
    // The time since the last completion counts too.
    const intervalMs = Math.max((newest - oldest) / (numFinished - 1), (nowMs - oldest) / numFinished);
    return Math.min(maxSeconds, Math.max(1, Math.ceil((backlog * intervalMs) / 1000)));
  }
}
