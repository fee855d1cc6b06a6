import type { StepRecord } from "@octavo/engine";

/** How a machine's time was spent, in ms; the three parts add up to `wallMs`. */
export interface MachineTime {
  readonly wallMs: number;
  /** In the backend; the shares of all requests add up to it. */
  readonly computingMs: number;
  /** Requests were present but nothing was computed. */
  readonly overheadMs: number;
  readonly idleMs: number;
}

/** Splits a machine's time by the engine's steps. Times are on `performance.now()`'s clock. */
export class MachineClock {
  readonly #startMs: number;
  /** The end of the latest step: time up to here is accounted for. */
  #untilMs: number;
  #computingMs = 0;
  #overheadMs = 0;
  #idleMs = 0;
  /** Whether requests remained when the latest step ended. */
  #wasBusy = false;

  constructor(startMs: number) {
    this.#startMs = startMs;
    this.#untilMs = startMs;
  }

  /** `isBusy`: requests remain in the engine. */
  noteStep({ startMs, durationMs, computeMs }: StepRecord, isBusy: boolean): void {
    const betweenMs = Math.max(0, startMs - this.#untilMs);
    if (this.#wasBusy) this.#overheadMs += betweenMs;
    else this.#idleMs += betweenMs;
    this.#computingMs += computeMs;
    this.#overheadMs += Math.max(0, durationMs - computeMs);
    this.#untilMs = Math.max(this.#untilMs, startMs) + Math.max(durationMs, computeMs);
    this.#wasBusy = isBusy;
  }

  /** As of now; a step that has not ended is not counted yet. `isBusy`: requests are in the engine. */
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
