import type { ObservedReplica, WantedReplicas } from "../replica-driver.js";

/**
 * How many replicas each version has of Ray: a pure function. Every version is an application of its own, for within one Ray stops old
 * replicas before new ones are there. A new version is one replica ahead of those that are ready; old replicas go as new ones are.
 */
export function planRay(
  { spec, count, ready }: WantedReplicas,
  observed: readonly ObservedReplica[],
  running: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const numReady = (version: string): number =>
    observed.filter((one) => one.version === version && one.state === "running" && ready.has(one.id)).length;
  const old = [...running].filter(([version]) => version !== spec.version);
  const numNew = numReady(spec.version);
  let missing = Math.max(0, count - numNew);
  const planned: [string, number][] = old.map(([version, most]) => {
    // once new ones serve, old ones that do not are worth nothing; before, nobody may have been asked yet
    const kept = Math.min(most, missing, numNew === 0 ? most : numReady(version));
    missing -= kept;
    return [version, kept];
  });
  const isUpdating = planned.some(([, kept]) => kept > 0);
  planned.push([spec.version, isUpdating ? Math.min(count, numNew + 1) : count]);
  return new Map(planned.filter(([, number]) => number > 0));
}
