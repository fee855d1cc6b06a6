import { FairPolicy } from "./fair.js";
import { hasPriority, OrderedPolicy } from "./ordered-policy.js";
import { arrivedBefore, type SchedulingPolicy, type SchedulingPolicyName } from "./scheduling-policy.js";

const policies: Readonly<Record<SchedulingPolicyName, (maxNumSeqs: number) => SchedulingPolicy>> = {
  fcfs: () => new OrderedPolicy("fcfs", arrivedBefore),
  priority: () => new OrderedPolicy("priority", hasPriority),
  fair: (maxNumSeqs) => new FairPolicy(maxNumSeqs),
};

/** A policy for one scheduler, which runs `maxNumSeqs` sequences at a time. */
export function createSchedulingPolicy(name: SchedulingPolicyName, maxNumSeqs: number): SchedulingPolicy {
  return policies[name](maxNumSeqs);
}
