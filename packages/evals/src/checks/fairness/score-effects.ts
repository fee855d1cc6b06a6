import { groupBy } from "@octavo/protocol";
import { Random, tailMean } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { clusterMean, dropBelow } from "../judging/cluster-mean.js";
import { lossEffect } from "../judging/loss-effect.js";
import { moreOften } from "../judging/more-often.js";
import type { PairedScore } from "../judging/paired-comparison.js";
import type { ArrivalScores } from "../judging/arrival-scores.js";
import { BlockDraws } from "../judging/block-draws.js";
import { fewestBlocks } from "../judging/quantile-ratio.js";
import { marginEffect, type TestedEffect, unseenEffect } from "../judging/verdicts.js";

interface ScoreLimits {
  readonly scoreMargin: number;
  readonly worstShare: number;
  readonly alpha: number;
  readonly resamples: number;
  readonly seed: number;
}

/** Loss of a tenant's score beside others, against its own answers to the same cases when alone. */
export function lossFromSolo(
  label: string,
  { evaluator, scores, compared, oneSided, isWhole }: ArrivalScores,
  limits: ScoreLimits,
): readonly TestedEffect[] {
  const { scoreMargin: margin, alpha } = limits;
  const name = `${label}${evaluator}, less than alone`;
  if (compared === undefined) return oneSided === 0 ? [] : [unseenEffect(name, { margin, alpha })];
  const mean = lossEffect(name, compared, { margin, alpha });
  const isGraded = scores.some(({ before, after }) => !isPassOrFail(before) || !isPassOrFail(after));
  const effects = isGraded ? [mean, worstEffect(label, evaluator, scores, limits)] : [mean];
  return effects.map((effect) => ({ ...effect, isWithin: effect.isWithin && isWhole }));
}

/** What it scores less than the others, where its own solo run is not known: their cases may be other ones. */
export function lossFromOthers(
  label: string,
  evaluator: string,
  own: readonly Observation[],
  others: readonly Observation[],
  { scoreMargin: margin, alpha }: ScoreLimits,
): readonly TestedEffect[] {
  const scores = (seen: readonly Observation[]) => seen.flatMap((one) => one.scores[evaluator] ?? []);
  const [mine, theirs] = [scores(own), scores(others)];
  if (mine.length === 0 || theirs.length === 0) return [];
  const name = `${label}${evaluator}, less than the other tenants'`;
  const limits = { margin, alpha };
  const clustered = (seen: readonly Observation[]) =>
    clusterMean(
      seen.flatMap((one) => scores([one]).map((value) => ({ cluster: one.cluster ?? one.caseId, value }))),
    )!;
  const [reference, cell] = [clustered(others), clustered(own)];
  const isClustered = reference.clusters.size < theirs.length || cell.clusters.size < mine.length;
  if (!isClustered && [...mine, ...theirs].every(isPassOrFail)) {
    const passed = (values: readonly number[]) => ({
      successes: values.filter((value) => value === 1).length,
      trials: values.length,
    });
    return [moreOften(name, passed(theirs), passed(mine), limits)];
  }
  const { drop, interval, pValue } = dropBelow(reference, cell, margin, 1 - alpha);
  const method = "difference of means, cluster-robust";
  return [marginEffect({ name, method, estimate: drop, interval, pValue }, limits)];
}

/** Loss of the mean of the worst scores (conditional value at risk), with a bootstrap over cases. */
function worstEffect(
  label: string,
  evaluator: string,
  pairs: readonly PairedScore[],
  { scoreMargin: margin, worstShare, alpha, resamples, seed }: ScoreLimits,
): TestedEffect {
  const clusters = [...groupBy(pairs, ({ cluster }) => cluster).values()];
  const worst = (values: readonly number[]) => tailMean(values, 1 - worstShare, "lower");
  const loss = (drawn: readonly PairedScore[]) =>
    worst(drawn.map(({ before }) => before)) - worst(drawn.map(({ after }) => after));
  const random = new Random(seed);
  const drawn =
    clusters.length < fewestBlocks
      ? []
      : Array.from({ length: resamples }, () => loss(clusters.flatMap(() => random.pick(clusters))));
  const draws = new BlockDraws(drawn, clusters.length);
  return marginEffect(
    {
      name: `${label}worst ${Math.round(100 * worstShare)} % of ${evaluator}, less than alone`,
      method: "mean of the worst scores, bootstrap over cases",
      estimate: loss(pairs),
      interval: draws.interval(1 - alpha),
      pValue: draws.pValueBeyond(margin),
    },
    { margin, alpha },
  );
}

function isPassOrFail(value: number): boolean {
  return value === 0 || value === 1;
}
