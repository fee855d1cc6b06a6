import { groupBy } from "@octavo/protocol";
import type { CheckResult, Hypothesis, MovedCase, SampleSize } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectTwoTenants } from "./collect.js";
import { swapSmallTenant } from "../judging/placebos.js";
import type { Observation } from "../observation.js";
import { intervalsFigure } from "../judging/figures.js";
import { requestsForTail, tailSampleSize } from "../judging/quantile-ratio.js";
import { pairArrivals } from "../judging/time-blocks.js";
import { adviceAfter } from "../judging/undecided.js";
import {
  decide,
  marginEffect,
  nearestToMargin,
  overallVerdict,
  type TestedEffect,
} from "../judging/verdicts.js";
import { betweenTenants } from "./between-tenants.js";
import { fairnessAdvice } from "./advice.js";
import { aggregateRule } from "./aggregate-rule.js";
import { latencySeries, serviceSeries } from "./figures.js";
import { latencyEffects, type OwnTraffic, soloFailures } from "./latency-effects.js";
import { serviceGap } from "./service-gap.js";
import { type FairnessSettings, fairnessSettings } from "./settings.js";

/** A small tenant beside a large one, compared with itself alone. */
export const fairnessCheck = defineCheck({
  name: "fairness",
  question: "Does one tenant's burst make another one wait, while the aggregate stays inside its objective?",
  settings: fairnessSettings,
  needs: ["cases"],
  collect: (bed, settings) => collectTwoTenants(bed, bed.candidate, settings),
  placebo: swapSmallTenant,
  judge: judgeFairness,
});

function judgeFairness(observations: readonly Observation[], settings: FairnessSettings): Judgement {
  const shared = observations.filter(({ condition }) => condition === settings.shared);
  const tenant = smallTenant(shared, settings.smallTenant);
  const own = {
    solo: observations.filter((seen) => seen.condition === settings.solo && isOf(seen, tenant)),
    shared: shared.filter((seen) => isOf(seen, tenant)),
  };
  const gap = tenant === undefined ? undefined : serviceGap(shared, tenant);
  const hypotheses = decide(
    [
      ...latencyEffects(own, settings),
      ...serviceEffect(gap?.tokens, settings),
      ...betweenTenants({ one: own.solo, other: peersOf(observations, settings) }, settings),
    ],
    settings.alpha,
  );
  const verdict = own.solo.length === 0 ? "inconclusive" : overallVerdict(hypotheses);
  const { ruleOfThumb, aggregateP99Ms } = aggregateRule(shared, {
    factor: settings.aggregateFactor,
    windowMs: settings.windowMs,
  });
  const sampleSize = sampleSizeOf(own, settings);
  return {
    verdict,
    summary: summarise(tenant, hypotheses, verdict),
    ruleOfThumb,
    hypotheses,
    sampleSize,
    advice: adviceAfter(verdict, () => fairnessAdvice(own.shared), sampleSize),
    movedCases: slowedCases(own, settings.e2eMargin),
    figures: [
      ...intervalsFigure("The small tenant beside the large one, over itself alone", "times", hypotheses),
      ...latencySeries(own, shared, tenant),
      ...serviceSeries(shared),
    ],
    notes: [
      ...notesOn(own, shared, settings),
      !ruleOfThumb.tripped &&
        verdict === "fail" &&
        aggregateP99Ms !== undefined &&
        `The published rule passes: everybody waits (p99 of all ${Math.round(aggregateP99Ms)} ms), so nobody waits much longer than the aggregate. It cannot see overload.`,
      gap !== undefined &&
        `While ${tenant} had a request waiting, ${gap.other} was served ${Math.round(gap.tokens)} tokens more (a prompt token counts 1, one of output 2).`,
    ],
  };
}

/** The other tenant's answers to the small one's requests, alone. */
export function peersOf(
  observations: readonly Observation[],
  { peer }: { readonly peer: string },
): readonly Observation[] {
  return observations.filter(({ condition }) => condition === peer);
}

function isOf(seen: Observation, tenant: string | undefined): boolean {
  return seen.tenant === tenant;
}

/** The named tenant, or else the one with the fewest requests beside others. */
export function smallTenant(shared: readonly Observation[], named: string): string | undefined {
  const tenants = [...groupBy(shared, ({ tenant }) => tenant)].filter(([tenant]) => tenant !== undefined);
  if (tenants.some(([tenant]) => tenant === named)) return named;
  return tenants.toSorted(([, a], [, b]) => a.length - b.length)[0]?.[0];
}

function serviceEffect(tokens: number | undefined, settings: FairnessSettings): readonly TestedEffect[] {
  const { serviceGapTokens: margin, alpha } = settings;
  if (margin === undefined) return [];
  return [
    marginEffect(
      {
        name: "service gap while waiting",
        method: "counted, not sampled",
        estimate: tokens,
        interval: tokens === undefined ? undefined : [tokens, tokens],
        unit: "tokens",
        pValue: tokens === undefined ? undefined : Number(tokens <= margin),
      },
      { margin, alpha },
    ),
  ];
}

export function sampleSizeOf(
  { solo, shared }: OwnTraffic,
  settings: { readonly alpha: number; readonly power: number },
): SampleSize {
  const have = Math.min(solo.length, shared.length);
  return tailSampleSize(have, settings, "requests of the small tenant under each condition");
}

function notesOn(
  own: OwnTraffic,
  shared: readonly Observation[],
  settings: FairnessSettings,
): Judgement["notes"] {
  const few = requestsForTail(0.99, settings.alpha);
  const have = Math.min(own.solo.length, own.shared.length);
  const isSilent = ({ firstTokenMs, failureCode }: Observation) => firstTokenMs === undefined && !failureCode;
  const silent = own.shared.filter(isSilent).length;
  return [
    own.solo.length === 0 &&
      `There is no request of the small tenant under the condition ${JSON.stringify(settings.solo)}: without its own solo run nothing can be said.`,
    soloFailures(own.solo),
    have > 0 &&
      have < few &&
      settings.level === undefined &&
      `${have} requests bound no p99, which takes ${few}: ${have < 36 ? "nothing is judged" : "the p90 is judged instead"}.`,
    shared.some(({ tenant }) => tenant === undefined) && "Some requests do not say whose they are.",
    shared.length > 0 &&
      new Set(shared.map(({ tenant }) => tenant)).size < 2 &&
      "There was only one tenant: nobody could be in its way.",
    silent > 0 && `${silent} requests do not say when their first token came: stream them.`,
  ];
}

function summarise(
  tenant: string | undefined,
  hypotheses: readonly Hypothesis[],
  verdict: CheckResult["verdict"],
): string {
  const worst = nearestToMargin(hypotheses);
  if (tenant === undefined || worst === undefined)
    return "No tenant's waiting could be compared with its own alone.";
  const range =
    worst.interval === undefined ? "" : ` (${worst.interval.map((end) => end.toFixed(2)).join(" to ")})`;
  const figures = `${worst.name} ${worst.estimate.toFixed(2)}${range}, allowed ${worst.margin}`;
  if (verdict === "pass") return `${tenant} is isolated: ${figures}.`;
  return verdict === "fail" ? `${tenant} is starved: ${figures}.` : `Not decided for ${tenant}: ${figures}.`;
}

/** Requests that took longer beside others than is allowed. */
export function slowedCases(own: OwnTraffic, margin: number): readonly MovedCase[] {
  return pairArrivals(own.solo, own.shared)
    .map(({ caseId, reference, observed }) => ({
      caseId,
      what: "whole answer",
      before: `${reference.durationMs.toFixed(1)} ms`,
      after: observed.failureCode ?? `${observed.durationMs.toFixed(1)} ms`,
      severity: observed.durationMs / Math.max(1e-3, reference.durationMs),
    }))
    .filter(({ severity }) => severity > margin);
}
