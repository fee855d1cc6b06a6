import { laneOf, type Sequence } from "../sequence.js";
import { OrderedPolicy } from "./ordered-policy.js";
import { arrivedBefore } from "./scheduling-policy.js";

/** The most urgent lane first; in it the lowest `priority`, as vLLM has it; then by arrival. */
export class PriorityPolicy extends OrderedPolicy {
  override readonly name = "priority";

  override before(a: Sequence, b: Sequence): boolean {
    const lanes = laneOf(a) - laneOf(b);
    if (lanes !== 0) return lanes < 0;
    return a.group.priority === b.group.priority ? arrivedBefore(a, b) : a.group.priority < b.group.priority;
  }
}
