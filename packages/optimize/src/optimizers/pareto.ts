import type { Random } from "@octavo/statistics";

/**
 * For each case the candidates that score highest on it, less those that others make superfluous: a candidate is dominated where
 * on every case that it leads another leads too.
 * @param scores of each candidate on each case
 * @returns indices of candidates, by case
 */
export function paretoFront(scores: readonly (readonly number[])[]): readonly ReadonlySet<number>[] {
  const numCases = scores[0]?.length ?? 0;
  const fronts = Array.from({ length: numCases }, (_, at) => {
    const best = Math.max(...scores.map((row) => row[at]!));
    return new Set(scores.flatMap((row, index) => (row[at] === best ? [index] : [])));
  });
  const sums = scores.map((row) => row.reduce((sum, score) => sum + score, 0));
  // the weakest first, so that of two that lead the same cases the stronger remains
  const kept = new Set(fronts.flatMap((front) => [...front]));
  for (const index of [...kept].toSorted((a, b) => sums[a]! - sums[b]!)) {
    const led = fronts.filter((front) => front.has(index));
    const isDominated = led.every((front) => [...front].some((other) => other !== index && kept.has(other)));
    if (isDominated) kept.delete(index);
  }
  return fronts.map((front) => new Set([...front].filter((index) => kept.has(index))));
}

/** A candidate of the front, as likely as the number of cases that it leads. */
export function sampleFront(fronts: readonly ReadonlySet<number>[], random: Random): number {
  return random.pick(fronts.flatMap((front) => [...front]));
}
