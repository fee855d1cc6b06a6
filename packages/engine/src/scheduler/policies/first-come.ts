import type { Sequence } from "../sequence.js";
import { OrderedPolicy } from "./ordered-policy.js";
import { arrivedBefore } from "./scheduling-policy.js";

/** First come, first served. */
export class FirstComePolicy extends OrderedPolicy {
  override readonly name = "fcfs";

  override before(a: Sequence, b: Sequence): boolean {
    return arrivedBefore(a, b);
  }
}
