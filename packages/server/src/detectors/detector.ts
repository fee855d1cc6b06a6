import type { Explanation } from "@octavo/engine";
import type { Finding } from "./alert.js";
import type { DetectorThresholds } from "./thresholds.js";

/** What detectors are told beside what they observe. */
export interface DetectorContext {
  readonly thresholds: DetectorThresholds;
  /** Whether ratios and levels raise alerts too, beside the sequential tests. */
  readonly hasRules: boolean;
  /** Where a request's time to the first token went, by the engine's records. */
  explainFirstToken(requestId: string): Explanation | undefined;
}

/** Watches one thing. Times on `performance.now()`'s clock. */
export interface Detector {
  /** What holds now, asked for every second; one finding for each alert that is to fire or go on firing. */
  evaluate(nowMs: number): readonly Finding[];
}

/** Calls back once for every slice of time that has passed, however seldom it is asked. */
export class SliceClock {
  readonly #sliceMs: number;
  #nextMs: number | undefined;

  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs;
  }

  /** At most `most` times: after a long silence older slices are all empty. */
  pass(nowMs: number, most: number, onSlice: () => void): boolean {
    this.#nextMs ??= nowMs + this.#sliceMs;
    let passed = 0;
    while (nowMs >= this.#nextMs) {
      if (passed < most) onSlice();
      passed += 1;
      const behind = Math.floor((nowMs - this.#nextMs) / this.#sliceMs);
      this.#nextMs += this.#sliceMs * (passed >= most ? behind + 1 : 1);
    }
    return passed > 0;
  }
}
