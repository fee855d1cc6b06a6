import { OctavoError } from "@octavo/protocol";
import type { RequestBatch } from "../api.js";
import type { ActiveRequest } from "./active-request.js";

const intervalsKept = 32;

/** Bounds how many requests wait for admission, and tells those it refuses when to try again. */
export class AdmissionQueue {
  readonly #maxRequests: number;
  #latestBatch: RequestBatch | undefined;
  readonly #waiting = new Set<ActiveRequest>();
  /** When the latest requests finished, oldest first. */
  readonly #finishedMs: number[] = [];

  constructor(maxRequests: number) {
    this.#maxRequests = maxRequests;
  }

  /**
   * Throws `queue_full` when no more may wait, beside those for whom there are `freePlaces` in the next step. A batch
   * whose first request was let in is let in whole.
   */
  check(freePlaces: number, batch: RequestBatch | undefined): void {
    if (batch !== undefined && batch === this.#latestBatch) return;
    this.#latestBatch = undefined;
    this.#checkRoom(freePlaces);
    this.#latestBatch = batch;
  }

  enter(request: ActiveRequest): void {
    this.#waiting.add(request);
  }

  leave(request: ActiveRequest): void {
    this.#waiting.delete(request);
  }

  /** How long the first of the waiting has been in the queue, 0 where nobody waits. */
  oldestWaitingMs(nowMs: number): number {
    const oldest = this.#waiting.values().next().value;
    return oldest === undefined ? 0 : nowMs - oldest.timeline.queuedMs;
  }

  /** Requests come after a time without any: what finished before it says nothing about how fast these will. */
  noteWork(): void {
    this.#finishedMs.length = 0;
  }

  noteFinished(nowMs: number): void {
    this.#finishedMs.push(nowMs);
    if (this.#finishedMs.length > intervalsKept) this.#finishedMs.shift();
  }

  #checkRoom(freePlaces: number): void {
    if (this.#waiting.size < this.#maxRequests + freePlaces) return;
    throw new OctavoError(
      "queue_full",
      `${this.#waiting.size} requests are waiting, which is the limit. Try again later.`,
      {
        retryAfterSeconds: this.#retryAfterSeconds(),
      },
    );
  }

  /** The time in which as many requests finished lately as are waiting now; between 1 s and 60 s. */
  #retryAfterSeconds(): number {
    const [oldest] = this.#finishedMs;
    const newest = this.#finishedMs.at(-1);
    if (oldest === undefined || newest === undefined || this.#finishedMs.length < 2) return 1;
    const intervalMs = (newest - oldest) / (this.#finishedMs.length - 1);
    return Math.min(60, Math.max(1, Math.ceil((this.#waiting.size * intervalMs) / 1000)));
  }
}
