import type { Sequence } from "../sequence.js";
import { WaitingQueue } from "../waiting-queue.js";
import type { SchedulingPolicy, SchedulingPolicyName, StepPlanner } from "./scheduling-policy.js";

/** Waiting sequences that a step passes over at most, so that its cost does not grow with the queue. */
const mostPassedOver = 64;

/**
 * A policy of one fixed order: of the waiting queue and, from its end, of preemption. Neither admission nor preemption
 * changes it, so a preempted sequence stands where it stood before. Running prompts come first, then waiting ones, then
 * what is left of the budget goes to prompts that were capped.
 */
export abstract class OrderedPolicy implements SchedulingPolicy {
  abstract readonly name: SchedulingPolicyName;
  readonly waiting = new WaitingQueue(this);

  abstract before(a: Sequence, b: Sequence): boolean;

  enter(): void {}

  leave(): void {}

  given(): void {}

  observe(): void {}

  decodes(running: readonly Sequence[]): readonly Sequence[] {
    return running.filter((sequence) => sequence.isDecoding);
  }

  planPrompts(step: StepPlanner): void {
    for (const sequence of step.running.slice()) {
      if (sequence.numScheduled === 0) step.give(sequence, step.promptCap);
    }
    if (!step.isShortOfBlocks) this.#admitWaiting(step);
    if (!step.isChunked) return;
    for (const sequence of step.running) {
      if (step.promptRoom === 0) return;
      step.extend(sequence, Number.POSITIVE_INFINITY);
    }
    if (step.liftLongCap() && !step.isShortOfBlocks) this.#admitWaiting(step);
  }

  #admitWaiting(step: StepPlanner): void {
    const passedOver: Sequence[] = [];
    step.beginAdmission();
    while (step.promptRoom > 0 && step.running.length < step.maxNumSeqs) {
      const sequence = this.waiting.peek();
      if (sequence === undefined) break;
      const admission = step.admit(sequence, step.promptCap);
      if (admission === "full") break;
      if (admission === "admitted") continue;
      if (passedOver.length === mostPassedOver) break;
      this.waiting.remove(sequence);
      passedOver.push(sequence);
    }
    for (const sequence of passedOver) this.waiting.add(sequence);
  }
}
