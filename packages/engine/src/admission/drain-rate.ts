const intervalsKept = 32;
const mostSeconds = 60;

/** How fast requests finish, for telling those who are refused when to try again. */
export class DrainRate {
  /** When the latest requests finished, oldest first. */
  readonly #finishedMs: number[] = [];

  get isKnown(): boolean {
    return this.#finishedMs.length >= 2;
  }

  note(nowMs: number): void {
    this.#finishedMs.push(nowMs);
    if (this.#finishedMs.length > intervalsKept) this.#finishedMs.shift();
  }

  /** What finished before says nothing about what comes now. */
  forget(): void {
    this.#finishedMs.length = 0;
  }

  /** The time in which as many requests finished lately as `backlog`; between 1 s and 60 s, 1 s when nothing is known. */
  secondsFor(backlog: number, nowMs: number): number {
    const [oldest] = this.#finishedMs;
    const newest = this.#finishedMs.at(-1);
    if (oldest === undefined || newest === undefined || !this.isKnown) return 1;
    const numFinished = this.#finishedMs.length;
    // Time in which nothing finished counts too.
    const intervalMs = Math.max((newest - oldest) / (numFinished - 1), (nowMs - oldest) / numFinished);
    return Math.min(mostSeconds, Math.max(1, Math.ceil((backlog * intervalMs) / 1000)));
  }
}
