import { FairPolicy } from "./fair.js";
import { FirstComePolicy } from "./first-come.js";
import { PriorityPolicy } from "./priority.js";
import type { SchedulingPolicy, SchedulingPolicyName } from "./scheduling-policy.js";

const policies: Readonly<Record<SchedulingPolicyName, (maxNumSeqs: number) => SchedulingPolicy>> = {
  fcfs: () => new FirstComePolicy(),
  priority: () => new PriorityPolicy(),
  fair: (maxNumSeqs) => new FairPolicy(maxNumSeqs),
};

/** A policy for one scheduler, which runs `maxNumSeqs` sequences at a time. */
export function createSchedulingPolicy(name: SchedulingPolicyName, maxNumSeqs: number): SchedulingPolicy {
  return policies[name](maxNumSeqs);
}
