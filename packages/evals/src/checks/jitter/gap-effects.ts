import { EProcess, exceedanceRateBound, quantile } from "@octavo/statistics";
import { levelFor, percentileName, quantileRatio, ratioEffect } from "../judging/quantile-ratio.js";
import { marginEffect, type TestedEffect, unseenEffect } from "../judging/verdicts.js";
import type { JitterSettings } from "./settings.js";

interface GapSlices {
  readonly baseline: readonly (readonly number[])[];
  readonly current: readonly (readonly number[])[];
}

interface GapJudgement {
  readonly effects: readonly TestedEffect[];
  /** Gaps longer than this are long; undefined without a baseline. */
  readonly longFromMs: number | undefined;
  readonly usualP99Ms: number | undefined;
}

/** A part of alpha is for how well the baseline's percentile is known. */
const boundShare = 0.2;

/**
 * Two statements on the 99th percentile of gaps. Sequential: no more of the gaps than `longShare` are over `factor` times the
 * baseline's, by a betting e-process on the share in each slice of time; it needs no distribution and no independence within
 * a slice, and may be looked at after every slice. Fixed: the ratio of the two percentiles, by a bootstrap over slices.
 */
export function judgeGaps(slices: GapSlices, settings: JitterSettings): GapJudgement {
  const baseline = slices.baseline.flat();
  const current = slices.current.flat();
  if (baseline.length === 0 || current.length === 0)
    return { effects: [], longFromMs: undefined, usualP99Ms: undefined };
  const usualP99Ms = quantile(baseline, 0.99);
  const longFromMs = settings.factor * usualP99Ms;
  return {
    effects: [sequentialEffect(slices, longFromMs, settings), percentileEffect(slices, settings)],
    longFromMs,
    usualP99Ms,
  };
}

function sequentialEffect(
  { baseline, current }: GapSlices,
  longFromMs: number,
  { longShare, fullSlice, alpha, factor }: JitterSettings,
): TestedEffect {
  const usual = baseline.flat();
  // the baseline's own 99th percentile is above the true one or below it: what may exceed it is bounded, not 1 %
  const isOverUsual = usual.filter((ms) => ms > longFromMs).length;
  const allowed = Math.max(
    longShare,
    exceedanceRateBound({ count: usual.length, rank: usual.length - isOverUsual }, 1 - boundShare * alpha),
  );
  const isBoundable = allowed < 0.5;
  const test = isBoundable ? new EProcess({ rate: allowed }) : undefined;
  let long = 0;
  for (const slice of current) {
    const own = slice.filter((ms) => ms > longFromMs).length;
    long += own;
    test?.observe(own / Math.max(fullSlice, slice.length));
  }
  const count = current.reduce((sum, slice) => sum + slice.length, 0);
  const share = long / count;
  return marginEffect(
    {
      name: `gaps over ${factor} times the usual p99`,
      method: isBoundable
        ? "betting e-process on the share in each slice of time"
        : "none: the baseline is too small to bound its p99",
      estimate: share,
      interval: undefined,
      pValue: test && Math.min(1, test.pValue / (1 - boundShare)),
      isWithin: isBoundable && share <= allowed,
    },
    { margin: allowed, alpha },
  );
}

function percentileEffect(
  { baseline, current }: GapSlices,
  { factor, alpha, resamples, seed }: JitterSettings,
): TestedEffect {
  const numGaps = Math.min(baseline.flat().length, current.flat().length);
  const level = levelFor(numGaps, alpha);
  const limits = { margin: factor, alpha };
  if (level === undefined) return unseenEffect("p90 of gaps, over the usual", limits, "ratio");
  const blocks = Array.from({ length: Math.max(baseline.length, current.length) }, (_, index) => ({
    reference: baseline[index] ?? [],
    observed: current[index] ?? [],
  }));
  const ratio = quantileRatio(blocks, { level, resamples, seed, isPaired: false });
  const name = `${percentileName(level)} of gaps, over the usual`;
  return ratioEffect(name, "bootstrap over slices of time", ratio, limits);
}
