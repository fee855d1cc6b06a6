import type { RequestName, StepRecord } from "@octavo/engine";
import type { ObservedGap } from "./gap-reasons.js";

/** Most gaps per step; batches are seldom larger, and the rest is ignored. */
const mostGaps = 4096;
const mostPreempted = 16_384;

/** Joins the gaps that the engine reports during a step with the step's record, which follows them. */
export class StepGaps {
  readonly #requests: RequestName[] = [];
  readonly #gapsMs: number[] = [];
  /** Preempted requests without output since. */
  readonly #preempted = new Set<string>();
  /** Requests with output in this step, and in the one before. */
  #outputs = new Set<string>();
  #previousOutputs = new Set<string>();

  notePreemption(requestId: string): void {
    if (this.#preempted.size < mostPreempted) this.#preempted.add(requestId);
  }

  noteEnd(requestId: string): void {
    this.#preempted.delete(requestId);
  }

  noteFirstToken(requestId: string): void {
    if (this.#outputs.size < mostGaps) this.#outputs.add(requestId);
  }

  noteGap(request: RequestName, gapMs: number): void {
    if (this.#gapsMs.length >= mostGaps) return;
    this.#outputs.add(request.requestId);
    this.#requests.push(request);
    this.#gapsMs.push(gapMs);
  }

  /** Passes on the gaps that the step ended. */
  end(step: StepRecord, take: (gap: ObservedGap) => void): void {
    for (const [index, gapMs] of this.#gapsMs.entries()) {
      const { requestId, tenant } = this.#requests[index]!;
      // every step gives output to each sequence that generates in it
      const wasSkipped = !this.#previousOutputs.has(requestId);
      const wasPreempted = this.#preempted.delete(requestId);
      take({ requestId, tenant, gapMs, step, wasSkipped, wasPreempted });
    }
    this.#requests.length = 0;
    this.#gapsMs.length = 0;
    const cleared = this.#previousOutputs;
    cleared.clear();
    this.#previousOutputs = this.#outputs;
    this.#outputs = cleared;
  }
}
