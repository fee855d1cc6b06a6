import { groupBy } from "@octavo/protocol";
import { mean, pairedTTest } from "@octavo/statistics";
import { scoresOfArrivals } from "../judging/arrival-scores.js";
import { lossEffect } from "../judging/loss-effect.js";
import type { Latency } from "../judging/answered-latencies.js";
import { moreOften } from "../judging/more-often.js";
import { pairArrivals, consecutive } from "../judging/time-blocks.js";
import { marginEffect, type TestedEffect } from "../judging/verdicts.js";
import type { Observation } from "../observation.js";

export interface BetweenTenantsLimits {
  readonly tenantMarginMs: number;
  readonly tenantScoreMargin: number;
  readonly failureMargin: number;
  readonly maxMissingShare: number;
  readonly numBlocks: number;
  readonly alpha: number;
}

/** Two tenants that sent the same requests at the same times, each alone. */
interface SameRequests {
  readonly one: readonly Observation[];
  readonly other: readonly Observation[];
}

/**
 * What one tenant gets worse than another for the same requests, either way around. Neither waits for anybody, so what differs is
 * how the deployment treats them: another model, another route, a delay.
 */
export function betweenTenants(
  { one, other }: SameRequests,
  limits: BetweenTenantsLimits,
): readonly TestedEffect[] {
  if (one.length === 0 || other.length === 0) return [];
  return [...worseThan(one, other, limits), ...worseThan(other, one, limits)];
}

function worseThan(
  observed: readonly Observation[],
  reference: readonly Observation[],
  limits: BetweenTenantsLimits,
): readonly TestedEffect[] {
  const { alpha, numBlocks, tenantMarginMs, tenantScoreMargin, failureMargin } = limits;
  const label = `${observed[0]?.tenant}, both alone: `;
  const than = `than ${reference[0]?.tenant}'s`;
  const pairs = pairArrivals(reference, observed);
  const answered = pairs.filter((pair) => isAnswered(pair.reference) && isAnswered(pair.observed));
  const later = (what: string, of: Latency, marginMs: number) => {
    const differences = answered.flatMap((pair) => {
      const [before, after] = [of(pair.reference), of(pair.observed)];
      return before === undefined || after === undefined ? [] : [after - before];
    });
    const blocks = consecutive(differences, numBlocks).map((block) => mean(block));
    return slowerEffect(`${label}${what}, later ${than}`, blocks, { margin: marginMs, alpha });
  };
  const usualMs = mean([0, ...answered.map((pair) => pair.reference.durationMs)]);
  const failed = (seen: readonly Observation[]) => ({
    successes: seen.filter((each) => !isAnswered(each)).length,
    trials: seen.length,
  });
  const scores = scoresOfArrivals(answered, limits).flatMap(({ evaluator, compared, isWhole }) => {
    if (compared === undefined) return [];
    const name = `${label}${evaluator}, less ${than}`;
    const effect = lossEffect(name, compared, { margin: tenantScoreMargin, alpha });
    return [{ ...effect, isWithin: effect.isWithin && isWhole }];
  });
  return [
    // of servers that do not stream nothing is known of it
    ...(answered.some((pair) => pair.reference.firstTokenMs !== undefined)
      ? [later("first tokens", ({ firstTokenMs }) => firstTokenMs, tenantMarginMs)]
      : []),
    later("whole answers", ({ durationMs }) => durationMs, Math.max(tenantMarginMs, usualShare * usualMs)),
    ...(failed(observed).successes === 0
      ? []
      : [
          moreOften(`${label}failed requests, more ${than}`, failed(observed), failed(reference), {
            margin: failureMargin,
            alpha,
          }),
        ]),
    ...scores,
  ];
}

/**
 * What a tenant gets later than the others for the same cases, beside them: of recorded traffic, where nobody was alone. Only
 * of a tenant that sends no more than the others together, since one that sends more waits for itself.
 */
export function laterThanOthers(
  label: string,
  own: readonly Observation[],
  others: readonly Observation[],
  { tenantMarginMs: margin, alpha }: BetweenTenantsLimits,
): readonly TestedEffect[] {
  if (own.length > others.length) return [];
  const mine = groupBy(own.filter(isAnswered), ({ caseId }) => caseId);
  const theirs = groupBy(others.filter(isAnswered), ({ caseId }) => caseId);
  const durationOf = (seen: readonly Observation[]) => mean(seen.map(({ durationMs }) => durationMs));
  const differences = [...mine].flatMap(([caseId, seen]) => {
    const same = theirs.get(caseId);
    return same === undefined ? [] : [durationOf(seen) - durationOf(same)];
  });
  const name = `${label}whole answers, later than the other tenants' to the same cases`;
  return differences.length === 0 ? [] : [slowerEffect(name, differences, { margin, alpha })];
}

/** Those of cases that the other side has too. */
export function ofSameCases(
  own: readonly Observation[],
  others: readonly Observation[],
): { readonly own: readonly Observation[]; readonly others: readonly Observation[] } {
  const within = (seen: readonly Observation[], cases: ReadonlySet<string>) =>
    seen.filter(({ caseId }) => cases.has(caseId));
  const idsOf = (seen: readonly Observation[]) => new Set(seen.map(({ caseId }) => caseId));
  return { own: within(own, idsOf(others)), others: within(others, idsOf(own)) };
}

function slowerEffect(
  name: string,
  differences: readonly number[],
  limits: { readonly margin: number; readonly alpha: number },
): TestedEffect {
  const { margin, alpha } = limits;
  const unit = "ms";
  if (differences.length < fewestDifferences) {
    const method = `none: ${differences.length} differences are too few`;
    return marginEffect(
      { name, method, unit, estimate: undefined, interval: undefined, pValue: undefined },
      limits,
    );
  }
  const estimate = mean(differences);
  const { interval = [estimate, estimate] } = pairedTTest(differences, { confidence: 1 - alpha });
  const beyond = pairedTTest(differences.map((difference) => difference - margin));
  const pValue = estimate <= margin ? 1 : (beyond.pValue ?? 0);
  return marginEffect(
    { name, method: "Student's t of paired differences", unit, estimate, interval, pValue },
    limits,
  );
}

const fewestDifferences = 8;
/** Long answers vary by more than a delay that matters: of them this share of their mean is borne. */
const usualShare = 0.1;

function isAnswered({ failureCode }: Observation): boolean {
  return failureCode === undefined;
}
