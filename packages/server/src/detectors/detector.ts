import type { Explanation } from "@octavo/engine";
import type { Finding } from "./alert.js";
import type { DetectorThresholds } from "./thresholds.js";

/** Settings and evidence for detectors. */
export interface DetectorContext {
  readonly thresholds: DetectorThresholds;
  /** Whether ratios and levels raise alerts too, in addition to the sequential tests. */
  readonly hasRules: boolean;
  /** Where a request's time to first token went, by the engine's records. */
  explainFirstToken(requestId: string): Explanation | undefined;
}

/** Monitors one quantity. Times are on `performance.now()`'s clock. */
export interface Detector {
  /** Called every second; one finding per alert that should fire or keep firing. */
  evaluate(nowMs: number): readonly Finding[];
}

/** Calls back once for each time slice that has passed, however rarely it is polled. */
export class SliceClock {
  readonly #sliceMs: number;
  #nextMs: number | undefined;

  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs;
  }

  /** At most `most` times: after a long idle period older slices are all empty. */
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
