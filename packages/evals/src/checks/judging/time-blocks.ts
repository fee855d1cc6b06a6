import type { Observation } from "../observation.js";
import { answeredLatency, type Latency } from "./answered-latencies.js";
import type { TimeBlock } from "./quantile-ratio.js";

/** Splits a list into `count` runs of neighbours, as even as can be. */
export function consecutive<T>(items: readonly T[], count: number): readonly (readonly T[])[] {
  const size = items.length / count;
  return Array.from({ length: count }, (_, index) =>
    items.slice(Math.round(index * size), Math.round((index + 1) * size)),
  ).filter((block) => block.length > 0);
}

export interface TimedPair {
  readonly caseId: string;
  readonly reference: Observation;
  readonly observed: Observation;
}

/**
 * The same arrivals under two conditions, in their order; a case that was sent several times is paired in the order of
 * sending.
 */
export function pairArrivals(
  reference: readonly Observation[],
  observed: readonly Observation[],
): readonly TimedPair[] {
  const waiting = new Map<string, Observation[]>();
  for (const one of byTime(observed)) {
    const own = waiting.get(one.caseId) ?? [];
    own.push(one);
    waiting.set(one.caseId, own);
  }
  return byTime(reference).flatMap((one) => {
    const other = waiting.get(one.caseId)?.shift();
    return other === undefined ? [] : [{ caseId: one.caseId, reference: one, observed: other }];
  });
}

interface LatencyBlocks {
  readonly blocks: readonly TimeBlock[];
  readonly isPaired: boolean;
  /** Size of the smaller side. */
  readonly count: number;
}

/**
 * A latency in stretches of neighbouring arrivals: of pairs where nearly every arrival has its like under the other
 * condition, otherwise of each condition by itself.
 */
export function latencyBlocks(
  reference: readonly Observation[],
  observed: readonly Observation[],
  { of, numBlocks }: { readonly of: Latency; readonly numBlocks: number },
): LatencyBlocks {
  const [ofReference, ofObserved] = [answeredLatency(reference, of), answeredLatency(observed, of)];
  const values = (seen: readonly Observation[], latency: Latency) =>
    seen.map(latency).filter((value): value is number => value !== undefined);
  const pairs = pairArrivals(reference, observed);
  if (pairs.length >= 0.9 * Math.max(reference.length, observed.length)) {
    const blocks = consecutive(pairs, numBlocks).map((block) => ({
      reference: values(
        block.map((pair) => pair.reference),
        ofReference,
      ),
      observed: values(
        block.map((pair) => pair.observed),
        ofObserved,
      ),
    }));
    return { blocks, isPaired: true, count: least(blocks) };
  }
  const [before, after] = [
    consecutive(byTime(reference), numBlocks),
    consecutive(byTime(observed), numBlocks),
  ];
  const blocks = Array.from({ length: Math.max(before.length, after.length) }, (_, index) => ({
    reference: values(before[index] ?? [], ofReference),
    observed: values(after[index] ?? [], ofObserved),
  }));
  return { blocks, isPaired: false, count: least(blocks) };
}

function least(blocks: readonly TimeBlock[]): number {
  const sum = (side: keyof TimeBlock) => blocks.reduce((total, block) => total + block[side].length, 0);
  return Math.min(sum("reference"), sum("observed"));
}

export function byTime(observations: readonly Observation[]): readonly Observation[] {
  return observations.toSorted((a, b) => a.scheduledEpochMs - b.scheduledEpochMs);
}

/** Those of one condition, by time. */
export function underCondition(
  observations: readonly Observation[],
  condition: string,
): readonly Observation[] {
  return byTime(observations.filter((seen) => seen.condition === condition));
}

const mostPoints = 600;

/** Every so many-th, so that a picture has points enough and no more; the last one stays. */
export function thinned<T>(items: readonly T[]): readonly T[] {
  const stride = Math.ceil(items.length / mostPoints);
  return stride <= 1 ? items : items.filter((_, index) => index % stride === 0 || index === items.length - 1);
}
