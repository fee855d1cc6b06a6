import type { ObservedReplica, WantedReplicas } from "../replica-driver.js";

export interface LocalActions {
  readonly start: number;
  readonly stop: readonly { readonly id: string; readonly how: "drain" | "kill" }[];
}

/**
 * What to do next on one machine: a pure function of what is wanted and what there is. Rejected replicas go at once. A new version
 * comes one replica at a time, beside the old ones, and an old one goes when a new one is ready: there are never fewer ready
 * replicas than wanted, nor more than one too many.
 */
export function planLocal(
  { spec, count, ready, rejected }: WantedReplicas,
  observed: readonly ObservedReplica[],
): LocalActions {
  const stop: LocalActions["stop"][number][] = [];
  const live = observed.filter(({ id, state }) => {
    if (state === "stopping") return false;
    if (!rejected.has(id)) return true;
    stop.push({ id, how: "kill" });
    return false;
  });
  const current = live.filter(({ version }) => version === spec.version);
  const old = live.filter(({ version }) => version !== spec.version);
  const isReady = ({ id }: ObservedReplica): boolean => ready.has(id);
  if (old.length === 0) {
    // the youngest have the least in their caches; those that do not serve yet cost nothing
    const surplus = [...current.filter((one) => !isReady(one)), ...current.filter(isReady).toReversed()];
    for (const { id } of surplus.slice(0, Math.max(0, current.length - count)))
      stop.push({ id, how: "drain" });
    return { start: Math.max(0, count - current.length), stop };
  }
  const numReady = live.filter(isReady).length;
  const useless = old.filter((one) => !isReady(one));
  for (const { id } of useless) stop.push({ id, how: "drain" });
  const spare = Math.max(0, numReady - count);
  for (const { id } of old.filter(isReady).slice(0, spare)) stop.push({ id, how: "drain" });
  const left = live.length - stop.filter(({ id }) => live.some((one) => one.id === id)).length;
  const missing = count - current.length;
  return { start: missing > 0 && left <= count ? Math.min(missing, count + 1 - left) : 0, stop };
}
