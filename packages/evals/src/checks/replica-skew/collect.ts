import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import type { ReplicaSkewSettings } from "./settings.js";
import { collectCases, type CasePlan } from "../collecting/collect-cases.js";

/** Every case to every replica, in an order that turns with each case: no replica is always first. */
export async function collectReplicaSkew(
  bed: TestBed,
  settings: ReplicaSkewSettings,
): Promise<readonly Observation[]> {
  const { replicas } = bed;
  const condition = settings.condition ?? "replica";
  const plans = bed.cases.map((evalCase, index): CasePlan => {
    const start = index % Math.max(1, replicas.length);
    const turned = [...replicas.slice(start), ...replicas.slice(0, start)];
    return { evalCase, requests: turned.map((target) => ({ condition, target })) };
  });
  return collectCases(plans, {
    bed,
    purpose: "replica-skew",
    concurrency: settings.concurrency,
    wantsDigests: true,
    // the replica that was asked is more reliable than the one the answer names
    complete: (observation, { planned }) => ({ ...observation, replica: planned.target.name }),
  });
}
