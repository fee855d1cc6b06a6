import type { StepRecord } from "@octavo/engine";

/** What a machine's time went to, in ms; the three parts add up to `wallMs`. */
export interface MachineTime {
  readonly wallMs: number;
  /** In the backend: the requests' parts add up to it. */
  readonly computingMs: number;
  /** Requests were there, and nothing was computed. */
  readonly overheadMs: number;
  readonly idleMs: number;
}

/** Splits a machine's time by what the engine's steps say. Times on `performance.now()`'s clock. */
export class MachineClock {
  readonly #startMs: number;
  /** Until when time has been accounted for: the end of the latest step. */
  #untilMs: number;
  #computingMs = 0;
  #overheadMs = 0;
  #idleMs = 0;
  /** Whether requests were left when the latest step ended. */
  #wasBusy = false;

  constructor(startMs: number) {
    this.#startMs = startMs;
    this.#untilMs = startMs;
  }

  /** `isBusy`: requests are left in the engine. */
  noteStep({ startMs, durationMs, computeMs }: StepRecord, isBusy: boolean): void {
    const betweenMs = Math.max(0, startMs - this.#untilMs);
    if (this.#wasBusy) this.#overheadMs += betweenMs;
    else this.#idleMs += betweenMs;
    this.#computingMs += computeMs;
    this.#overheadMs += Math.max(0, durationMs - computeMs);
    this.#untilMs = Math.max(this.#untilMs, startMs) + Math.max(durationMs, computeMs);
    this.#wasBusy = isBusy;
  }

  /** As of now; what a step takes that has not ended is not yet in any part. `isBusy`: requests are in the engine. */
  read(nowMs: number, isBusy: boolean): MachineTime {
    if (!isBusy && nowMs > this.#untilMs) {
      this.#idleMs += nowMs - this.#untilMs;
      this.#untilMs = nowMs;
      this.#wasBusy = false;
    }
    return {
      wallMs: this.#untilMs - this.#startMs,
      computingMs: this.#computingMs,
      overheadMs: this.#overheadMs,
      idleMs: this.#idleMs,
    };
  }
}
