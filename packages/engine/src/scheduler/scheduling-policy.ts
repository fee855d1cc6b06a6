import type { Sequence } from "./sequence.js";

export type SchedulingPolicyName = "fcfs" | "priority";

/**
 * Who is served before whom: the order of the waiting queue and, from its end, of preemption. Neither admission nor
 * preemption changes it, so a preempted sequence stands where it stood before.
 */
export interface SchedulingPolicy {
  readonly name: SchedulingPolicyName;
  /** A strict total order. */
  before(a: Sequence, b: Sequence): boolean;
}

function arrivedBefore(a: Sequence, b: Sequence): boolean {
  return a.group.order === b.group.order ? a.index < b.index : a.group.order < b.group.order;
}

export const schedulingPolicies: Readonly<Record<SchedulingPolicyName, SchedulingPolicy>> = {
  /** First come, first served. */
  fcfs: { name: "fcfs", before: arrivedBefore },
  /** Lowest number first, then by arrival. */
  priority: {
    name: "priority",
    before: (a, b) =>
      a.group.priority === b.group.priority ? arrivedBefore(a, b) : a.group.priority < b.group.priority,
  },
};
