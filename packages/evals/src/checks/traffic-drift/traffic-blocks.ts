import type { Observation } from "../observation.js";
import { byTime } from "../judging/time-blocks.js";

/** What is counted of a stretch of time: sums that add up over stretches. */
export interface TrafficBlock {
  readonly durationMs: number;
  readonly count: number;
  /** Arrivals per window of the stretch: number of windows, sum, and sum of squares. */
  readonly windows: number;
  readonly counted: number;
  readonly squares: number;
  /** By bin of the shared grid. */
  readonly histograms: ReadonlyMap<string, Float64Array>;
}

/** A feature of requests with the bins in which it is counted. */
export interface Grid {
  readonly name: string;
  /** Whether a replay has it from the recording. */
  readonly isCopied: boolean;
  /** Undefined where a request does not say. */
  readonly binOf: (seen: Observation) => number | undefined;
  readonly numBins: number;
  /** The value of each bin; undefined for unordered bins. */
  readonly values: Float64Array | undefined;
}

const mostBins = 64;

/** Bins of a length, so that each holds about as many of all requests. */
export function lengthGrid(
  name: string,
  of: (seen: Observation) => number | undefined,
  observations: readonly Observation[],
  isCopied = false,
): Grid {
  const sorted = observations
    .map(of)
    .filter((value): value is number => value !== undefined)
    .toSorted((a, b) => a - b);
  const edges: number[] = [];
  for (let bin = 0; bin < mostBins; bin++) {
    const edge = sorted[Math.ceil(((bin + 1) * sorted.length) / mostBins) - 1];
    if (edge !== undefined && edge !== edges.at(-1)) edges.push(edge);
  }
  return {
    name,
    isCopied,
    numBins: edges.length,
    values: Float64Array.from(edges),
    binOf(seen) {
      const value = of(seen);
      if (value === undefined) return undefined;
      let [low, high] = [0, edges.length - 1];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (edges[middle]! < value) low = middle + 1;
        else high = middle;
      }
      return low;
    },
  };
}

/** A bin for each name. */
export function nameGrid(
  name: string,
  of: (seen: Observation) => string | undefined,
  observations: readonly Observation[],
  isCopied = false,
): Grid {
  const bins = new Map<string, number>();
  for (const seen of observations) {
    const value = of(seen);
    if (value !== undefined && !bins.has(value)) bins.set(value, bins.size);
  }
  return {
    name,
    isCopied,
    numBins: bins.size,
    values: undefined,
    binOf(seen) {
      const value = of(seen);
      return value === undefined ? undefined : bins.get(value);
    },
  };
}

/** Equal stretches of the time from the first request to the last; none where they came all at once. */
export function trafficBlocks(
  observations: readonly Observation[],
  {
    numBlocks,
    windowMs,
    grids,
  }: { readonly numBlocks: number; readonly windowMs: number; readonly grids: readonly Grid[] },
): readonly TrafficBlock[] {
  const sorted = byTime(observations);
  const beginMs = sorted[0]?.scheduledEpochMs ?? 0;
  const lengthMs = (sorted.at(-1)?.scheduledEpochMs ?? 0) - beginMs;
  if (lengthMs <= 0) return [];
  // a stretch holds whole windows where it can
  const perBlock = Math.max(1, Math.floor(lengthMs / numBlocks / windowMs));
  const blockMs = lengthMs / numBlocks;
  const countedMs = Math.min(windowMs, blockMs);
  const blocks = Array.from({ length: numBlocks }, () => ({
    durationMs: blockMs,
    count: 0,
    counts: new Float64Array(perBlock),
    histograms: new Map(grids.map(({ name, numBins }) => [name, new Float64Array(numBins)])),
  }));
  for (const seen of sorted) {
    const at = seen.scheduledEpochMs - beginMs;
    const index = Math.min(numBlocks - 1, Math.floor(at / blockMs));
    const block = blocks[index]!;
    block.count += 1;
    const window = Math.floor((at - index * blockMs) / countedMs);
    if (window < perBlock) block.counts[window]! += 1;
    for (const { name, binOf } of grids) {
      const bin = binOf(seen);
      if (bin !== undefined) block.histograms.get(name)![bin]! += 1;
    }
  }
  return blocks.map(({ durationMs, count, counts, histograms }) => ({
    durationMs,
    count,
    windows: counts.length,
    counted: counts.reduce((sum, value) => sum + value, 0),
    squares: counts.reduce((sum, value) => sum + value * value, 0),
    histograms,
  }));
}
