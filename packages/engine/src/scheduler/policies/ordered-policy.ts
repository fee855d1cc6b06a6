import { OctavoError } from "@octavo/protocol/errors";
import { IndexedHeap } from "../indexed-heap.js";
import { laneOf, type Sequence } from "../sequence.js";
import {
  arrivedBefore,
  type SchedulingPolicy,
  type SchedulingPolicyName,
  type StepPlanner,
  type WaitingLine,
} from "./scheduling-policy.js";

/** Waiting sequences that one step may pass over, so that its cost does not grow with the queue. */
const maxPassedOver = 64;

/** Waiting sequences in an order that does not change while they wait. */
class WaitingQueue extends IndexedHeap<Sequence> implements WaitingLine {
  override checkIntegrity(): void {
    super.checkIntegrity("waiting queue");
    for (const { status, group } of this) {
      if (status !== "waiting")
        throw new OctavoError("internal_error", `waiting queue: ${group.requestId} should not wait`);
    }
  }
}

/**
 * A policy of one fixed order, both of admission and, from its end, of preemption. Neither changes the order, so a preempted
 * sequence returns to its old position. Running prompts come first, then waiting ones, then prompts that were capped get what is
 * left of the budget.
 */
export class OrderedPolicy implements SchedulingPolicy {
  readonly name: SchedulingPolicyName;
  readonly waiting: WaitingQueue;
  readonly before: (a: Sequence, b: Sequence) => boolean;

  constructor(name: SchedulingPolicyName, before: (a: Sequence, b: Sequence) => boolean) {
    this.name = name;
    this.before = before;
    this.waiting = new WaitingQueue(before);
  }

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
      if (passedOver.length === maxPassedOver) break;
      this.waiting.remove(sequence);
      passedOver.push(sequence);
    }
    for (const sequence of passedOver) this.waiting.add(sequence);
  }
}

/** The most urgent lane first; within it the lowest `priority`, as in vLLM; then by arrival. */
export function hasPriority(a: Sequence, b: Sequence): boolean {
  const lanes = laneOf(a) - laneOf(b);
  if (lanes !== 0) return lanes < 0;
  return a.group.priority === b.group.priority ? arrivedBefore(a, b) : a.group.priority < b.group.priority;
}
