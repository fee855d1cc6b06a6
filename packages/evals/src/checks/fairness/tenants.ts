import { groupBy } from "@octavo/protocol";
import { quantile } from "@octavo/statistics";
import type { CheckResult, Chart, Hypothesis, RuleOfThumb } from "../check.js";
import type { Judgement } from "../define-check.js";
import { betweenTenants, laterThanOthers, ofSameCases } from "./between-tenants.js";
import { peersOf, tenantsReport } from "./report.js";
import { latencySeries } from "./figures.js";
import { latencyEffects, soloFailures } from "./latency-effects.js";
import type { Observation } from "../observation.js";
import { type ArrivalScores, oneSidedNotes, scoresOfArrivals } from "../judging/arrival-scores.js";
import { intervalsFigure } from "../judging/figures.js";
import { evaluatorsOf } from "../judging/pairs.js";
import { rounded } from "../judging/rounded.js";
import { pairArrivals } from "../judging/time-blocks.js";
import { decide, nearestToMargin, overallVerdict, type TestedEffect } from "../judging/verdicts.js";
import { lossFromOthers, lossFromSolo } from "./score-effects.js";
import type { TenantFairnessSettings } from "./settings.js";

/** Each tenant is a family of hypotheses: beyond this many, those with fewest requests are the ones to look at. */
const mostTenants = 16;

interface TenantTraffic {
  readonly tenant: string;
  readonly solo: readonly Observation[];
  readonly shared: readonly Observation[];
  readonly others: readonly Observation[];
}

export function judgeTenants(
  observations: readonly Observation[],
  settings: TenantFairnessSettings,
): Judgement {
  const shared = observations.filter(({ condition }) => condition === settings.shared);
  const all = tenantsOf(observations, shared, settings.solo);
  const hasSolo = all.some(({ solo }) => solo.length > 0);
  // with solo runs the tenants that have one are judged; without any, all are, by their scores alone
  const judgeable = all.filter(({ solo }) => !hasSolo || solo.length > 0);
  const judged = judgeable.slice(0, mostTenants);
  const hypotheses = decide(
    judged.flatMap((tenant) => effectsOf(tenant, peersOf(observations, settings), settings)),
    settings.alpha,
  );
  // where waiting was not judged, or not of every tenant, nothing can pass
  const verdict = overallVerdict(hypotheses, hasSolo && judged.length === judgeable.length);
  const [first] = judged;
  return {
    ...tenantsReport(judged, verdict, settings),
    summary: summarise(hypotheses, verdict),
    ruleOfThumb: publishedRule(shared, settings),
    hypotheses,
    figures: [
      ...intervalsFigure("Each tenant beside the others, against itself alone", "", hypotheses),
      ...replicaHeatmap(shared),
      ...(first === undefined ? [] : latencySeries(first, shared, first.tenant)),
    ],
    notes: [
      ...notesOn(observations, shared, all, hasSolo),
      judgeable.length > judged.length &&
        `${judgeable.length} tenants could be judged, and the ${mostTenants} with fewest requests were: nothing is said of ${named(judgeable.slice(mostTenants))}, so the check cannot pass. Judge them in groups.`,
      ...judged.map(({ solo }) => soloFailures(solo)),
      ...judged.flatMap((tenant) => oneSidedNotes(labelOf(tenant), soloScores(tenant, settings))),
    ],
  };
}

/** Those with fewest requests first. */
function tenantsOf(
  observations: readonly Observation[],
  shared: readonly Observation[],
  solo: string,
): readonly TenantTraffic[] {
  return [...groupBy(shared, ({ tenant }) => tenant)]
    .toSorted(([, a], [, b]) => a.length - b.length)
    .flatMap(([tenant, own]) =>
      tenant === undefined
        ? []
        : [
            {
              tenant,
              shared: own,
              solo: observations.filter((seen) => seen.condition === solo && seen.tenant === tenant),
              others: shared.filter((seen) => seen.tenant !== tenant),
            },
          ],
    );
}

function effectsOf(
  traffic: TenantTraffic,
  peers: readonly Observation[],
  settings: TenantFairnessSettings,
): readonly TestedEffect[] {
  const label = labelOf(traffic);
  if (traffic.solo.length === 0)
    return [
      ...evaluatorsOf(traffic.shared).flatMap((evaluator) =>
        lossFromOthers(label, evaluator, traffic.shared, traffic.others, settings),
      ),
      ...laterThanOthers(label, traffic.shared, traffic.others, settings),
    ];
  return [
    ...latencyEffects(traffic, settings, label),
    ...soloScores(traffic, settings).flatMap((scored) => lossFromSolo(label, scored, settings)),
    ...(peers.length > 0
      ? betweenTenants({ one: traffic.solo, other: peers }, settings)
      : besideOthers(label, traffic, settings)),
  ];
}

/** Against the other tenants for the same cases, where no other sent them alone. */
function besideOthers(
  label: string,
  traffic: TenantTraffic,
  settings: TenantFairnessSettings,
): readonly TestedEffect[] {
  const { own, others } = ofSameCases(traffic.shared, traffic.others);
  return [
    ...laterThanOthers(label, own, others, settings),
    ...evaluatorsOf(own).flatMap((evaluator) => lossFromOthers(label, evaluator, own, others, settings)),
  ];
}

function labelOf({ tenant }: TenantTraffic): string {
  return `${tenant}: `;
}

function soloScores(
  { solo, shared }: TenantTraffic,
  settings: TenantFairnessSettings,
): readonly ArrivalScores[] {
  return scoresOfArrivals(pairArrivals(solo, shared), settings);
}

/** As published: a p99 of latency over 1.5 times the aggregate's, a "p99 score" more than 5 points below it. */
function publishedRule(shared: readonly Observation[], settings: TenantFairnessSettings): RuleOfThumb {
  const evaluators = evaluatorsOf(shared);
  const p99 = (values: readonly number[]) => (values.length === 0 ? null : quantile(values, 0.99));
  const latency = (seen: readonly Observation[]) => p99(seen.map(({ durationMs }) => durationMs));
  const score = (seen: readonly Observation[], evaluator: string) =>
    p99(seen.flatMap(({ scores }) => scores[evaluator] ?? []));
  let tripped = false;
  const aggregateMs = latency(shared) ?? 0;
  const rows = [...groupBy(shared, ({ tenant }) => tenant ?? "")].map(([tenant, own]) => {
    const ms = latency(own) ?? 0;
    if (ms > settings.aggregateFactor * aggregateMs) tripped = true;
    const scores = evaluators.map((evaluator) => {
      const [mine, aggregate] = [score(own, evaluator), score(shared, evaluator)];
      if (mine !== null && aggregate !== null && mine < aggregate - settings.scoreDrop) tripped = true;
      return mine;
    });
    const overAggregate = aggregateMs === 0 ? null : rounded(ms / aggregateMs, 2);
    return [tenant, own.length, rounded(ms, 2), overAggregate, ...scores];
  });
  return {
    rule: `alert when a tenant's p99 score drops below the aggregate's less ${Math.round(100 * settings.scoreDrop)} points, or its p99 latency exceeds ${settings.aggregateFactor} times the aggregate's`,
    tripped,
    columns: [
      "tenant",
      "requests",
      "p99 ms",
      "over aggregate",
      ...evaluators.map((name) => `p99 of ${name}`),
    ],
    rows,
  };
}

function replicaHeatmap(shared: readonly Observation[]): readonly Chart[] {
  const replicas = [...new Set(shared.map(({ replica }) => replica ?? "unknown"))].toSorted().slice(0, 32);
  const tenants = [...new Set(shared.map(({ tenant }) => tenant ?? "unknown"))].slice(0, 32);
  if (replicas.length < 2) return [];
  const cells = tenants.map((tenant) =>
    replicas.map((replica) => {
      const own = shared.filter(
        (seen) => (seen.tenant ?? "unknown") === tenant && (seen.replica ?? "unknown") === replica,
      );
      if (own.length === 0) return null;
      const value = quantile(
        own.map(({ durationMs }) => durationMs),
        0.9,
      );
      return { value, count: own.length, interval: undefined };
    }),
  );
  return [
    {
      kind: "heatmap",
      title: "p90 of whole answers, ms",
      xLabel: "replica",
      yLabel: "tenant",
      x: replicas,
      y: tenants,
      cells,
    },
  ];
}

function notesOn(
  observations: readonly Observation[],
  shared: readonly Observation[],
  all: readonly TenantTraffic[],
  hasSolo: boolean,
): Judgement["notes"] {
  const withoutSolo = all.filter(({ solo }) => solo.length === 0);
  return [
    evaluatorsOf(observations).length > 0
      ? "The published rule looks at the 99th percentile of a score, which is its best tail: a tenant with half its answers wrong has a p99 of 1. Judged are the mean, and of graded scores the mean of the worst."
      : "No answer was scored: only waiting was judged.",
    !hasSolo &&
      shared.length > 0 &&
      "No tenant has a solo run: how much of its waiting is due to others cannot be told, and its scores are held against the other tenants', whose cases may be other ones.",
    shared.some(({ tenant }) => tenant === undefined) &&
      "Some requests do not say whose they are (tenant_id, octavo.tenant.id, x-tenant-id).",
    hasSolo && withoutSolo.length > 0 && `Not judged, for want of a solo run: ${named(withoutSolo)}.`,
    shared.length > 0 &&
      shared.every(({ replica }) => replica === undefined) &&
      "No request says which replica answered it.",
  ];
}

const mostNamed = 8;

function named(tenants: readonly TenantTraffic[]): string {
  const more = tenants.length - mostNamed;
  const names = tenants.slice(0, mostNamed).map(({ tenant }) => tenant);
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function summarise(hypotheses: readonly Hypothesis[], verdict: CheckResult["verdict"]): string {
  const worst = nearestToMargin(hypotheses);
  if (worst === undefined) return "No tenant could be judged.";
  const figures = `${worst.name}: ${worst.estimate.toFixed(2)} (allowed ${worst.margin})`;
  if (verdict === "pass") return `No tenant suffers from the others; nearest ${figures}.`;
  return verdict === "fail" ? `A tenant suffers from the others: ${figures}.` : `Not decided: ${figures}.`;
}
