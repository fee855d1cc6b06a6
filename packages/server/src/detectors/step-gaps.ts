import type { StepRecord } from "@octavo/engine";
import type { ObservedGap } from "./gap-reasons.js";

/** Gaps of one step that are looked at; a batch is seldom larger, and what is beyond counts for nothing. */
const mostGaps = 4096;
const mostPreempted = 16_384;

/** Brings the gaps that the engine tells of during a step together with the step's record, which follows them. */
export class StepGaps {
  readonly #requestIds: string[] = [];
  readonly #gapsMs: number[] = [];
  /** Requests that gave their blocks back and have had no output since. */
  readonly #preempted = new Set<string>();
  /** The middle of the step before. */
  #previousMiddleMs = Number.NEGATIVE_INFINITY;

  notePreemption(requestId: string): void {
    if (this.#preempted.size < mostPreempted) this.#preempted.add(requestId);
  }

  noteEnd(requestId: string): void {
    this.#preempted.delete(requestId);
  }

  noteGap(requestId: string, gapMs: number): void {
    if (this.#gapsMs.length >= mostGaps) return;
    this.#requestIds.push(requestId);
    this.#gapsMs.push(gapMs);
  }

  /** Hands out the gaps that the step ended. */
  end(step: StepRecord, take: (gap: ObservedGap) => void): void {
    const endMs = step.startMs + step.durationMs;
    for (const [index, gapMs] of this.#gapsMs.entries()) {
      const requestId = this.#requestIds[index]!;
      // Whoever was in the step before got its output at its end; whoever was not, before it began.
      const wasSkipped = endMs - gapMs < this.#previousMiddleMs;
      const wasPreempted = this.#preempted.delete(requestId);
      take({ requestId, gapMs, step, wasSkipped, wasPreempted });
    }
    this.#requestIds.length = 0;
    this.#gapsMs.length = 0;
    this.#previousMiddleMs = step.startMs + step.durationMs / 2;
  }
}
