import { groupBy } from "@octavo/protocol";
import type { CheckResult, Hypothesis } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectTwoTenants } from "./collect.js";
import { swapSmallTenant } from "../judging/placebos.js";
import type { Observation } from "../observation.js";
import { intervalsFigure } from "../judging/figures.js";
import { requestsForTail } from "../judging/quantile-ratio.js";
import {
  decide,
  marginEffect,
  nearestToMargin,
  overallVerdict,
  type TestedEffect,
} from "../judging/verdicts.js";
import { betweenTenants } from "./between-tenants.js";
import { aggregateRule } from "./aggregate-rule.js";
import { latencySeries, serviceSeries } from "./figures.js";
import { latencyEffects, type OwnTraffic, soloFailures } from "./latency-effects.js";
import { serviceGap } from "./service-gap.js";
import { type FairnessSettings, fairnessSettings, tenantFairnessSettings } from "./settings.js";
import { LeastQueueRouter } from "../collecting/least-queue-router.js";
import { peersOf, tenantsReport } from "./report.js";
import { judgeTenants } from "./tenants.js";

const common = { needs: ["cases"], placebo: swapSmallTenant } as const;

/** A small tenant beside a large one, compared with itself alone. */
export const fairnessCheck = defineCheck({
  ...common,
  name: "fairness",
  question: "Does one tenant's burst make another one wait, while the aggregate stays inside its objective?",
  settings: fairnessSettings,
  collect: (bed, settings) => collectTwoTenants(bed, bed.candidate, settings),
  judge: judgeFairness,
});

/** Tenants of a cluster: what each waits for, and what its answers are worth. */
export const tenantFairnessCheck = defineCheck({
  ...common,
  name: "tenant-fairness",
  question: "Does any tenant of the cluster wait longer or get worse answers because of the others?",
  settings: tenantFairnessSettings,
  collect: (bed, settings) => {
    // a cluster with its own router is the candidate; replicas without one get one
    const target = bed.replicas.length > 1 ? new LeastQueueRouter("deployment", bed.replicas) : bed.candidate;
    return collectTwoTenants(bed, target, settings);
  },
  judge: judgeTenants,
});

function judgeFairness(observations: readonly Observation[], settings: FairnessSettings): Judgement {
  const shared = observations.filter(({ condition }) => condition === settings.shared);
  const tenant = smallTenant(shared, settings.smallTenant);
  const own = {
    solo: observations.filter((seen) => seen.condition === settings.solo && seen.tenant === tenant),
    shared: shared.filter((seen) => seen.tenant === tenant),
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
  return {
    ...tenantsReport([own], verdict, settings),
    summary: summarise(tenant, hypotheses, verdict),
    ruleOfThumb,
    hypotheses,
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

/** The named tenant, or else the one with the fewest requests beside others. */
function smallTenant(shared: readonly Observation[], named: string): string | undefined {
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
