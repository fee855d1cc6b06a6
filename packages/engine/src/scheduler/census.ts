import { accountOf, type Sequence } from "./sequence.js";

/** The number of a tenant's sequences. */
export interface TenantCount {
  readonly running: number;
  readonly waiting: number;
}

export function countByTenant(
  running: Iterable<Sequence>,
  waiting: Iterable<Sequence>,
): ReadonlyMap<string, TenantCount> {
  const counts = new Map<string, { running: number; waiting: number }>();
  const count = (sequence: Sequence, state: "running" | "waiting"): void => {
    const { tenant } = accountOf(sequence);
    let numbers = counts.get(tenant);
    if (numbers === undefined) counts.set(tenant, (numbers = { running: 0, waiting: 0 }));
    numbers[state] += 1;
  };
  for (const sequence of running) count(sequence, "running");
  for (const sequence of waiting) count(sequence, "waiting");
  return counts;
}

/** Each name once. */
export function adapterNames(sequences: Iterable<Sequence>): readonly string[] {
  const names = new Set<string>();
  for (const { group } of sequences) if (group.adapter !== undefined) names.add(group.adapter.name);
  return [...names];
}
