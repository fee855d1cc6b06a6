import { kolmogorovSmirnov } from "@octavo/statistics";
import type { CheckResult, Chart, Hypothesis, RuleOfThumb, SampleSize } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectTrafficDrift } from "./collect.js";
import { driftPlacebo } from "./placebo.js";
import type { Observation } from "../observation.js";
import { intervalsFigure } from "../judging/figures.js";
import { evaluatorsOf } from "../judging/pairs.js";
import { roundedMean } from "../judging/rounded.js";
import { underCondition } from "../judging/time-blocks.js";
import { decide, overallVerdict } from "../judging/verdicts.js";
import { driftAdvice } from "./advice.js";
import { dispersionOf, driftEffect, driftMeasures, ones, rateOf, type Sides } from "./drift-effects.js";
import { type Labelled, labelPatterns, patterns } from "./patterns.js";
import { type PatternSides, scoreEffects, unseenPatternEffect } from "./pattern-scores.js";
import { isReplay, replayNote } from "./replayed.js";
import { type TrafficDriftSettings, trafficDriftSettings } from "./settings.js";
import { type Grid, lengthGrid, nameGrid, trafficBlocks } from "./traffic-blocks.js";

/** What production sends against what the evaluation sent: where they differ, the evaluation is of something else. */
export const trafficDriftCheck = defineCheck({
  name: "traffic-drift",
  question: "Does the evaluation run under the traffic that production has?",
  settings: trafficDriftSettings,
  needs: ["cases"],
  neededSettings: ["recording"],
  collect: collectTrafficDrift,
  placebo: driftPlacebo,
  judge: judgeDrift,
});

function judgeDrift(observations: readonly Observation[], settings: TrafficDriftSettings): Judgement {
  const production = underCondition(observations, settings.production);
  const evaluation = underCondition(observations, settings.evaluation);
  const both = [...production, ...evaluation];
  const grids = gridsOf(both);
  const laidOut = { numBlocks: settings.numBlocks, windowMs: settings.dispersionWindowMs, grids };
  const sides: Sides = {
    production: trafficBlocks(production, laidOut),
    evaluation: trafficBlocks(evaluation, laidOut),
  };
  const labelled: PatternSides = {
    production: labelPatterns(production, settings),
    evaluation: labelPatterns(evaluation, settings),
  };
  const replayed = isReplay(evaluation);
  const measures = driftMeasures(grids, settings).filter(({ isCopied }) => !(replayed && isCopied));
  const hypotheses = decide(
    [
      ...measures.map((measure) => driftEffect(measure, sides, settings)),
      ...unseenPatternEffect(labelled, settings),
      ...evaluatorsOf(both).flatMap((evaluator) => scoreEffects(evaluator, labelled, settings)),
    ],
    settings.alpha,
  );
  const verdict = overallVerdict(hypotheses);
  return {
    verdict,
    summary: summarise(hypotheses, verdict, replayed),
    ruleOfThumb: ruleOfThumb(labelled, settings),
    hypotheses,
    sampleSize: sampleSize(sides, production, evaluation, settings),
    advice: driftAdvice(hypotheses),
    movedCases: [],
    figures: [
      ...intervalsFigure("Distance of the evaluation's traffic from production's", "", hypotheses),
      ...arrivalSeries(production, evaluation),
    ],
    notes: [replayed && replayNote, ...notesOn(production, evaluation, sides, labelled)],
  };
}

/** With whether a replay has them from its recording. */
const lengths = [
  ["prompt tokens", ({ promptTokens }: Observation) => promptTokens, false],
  ["output tokens", ({ completionTokens }: Observation) => completionTokens, true],
] as const;

/** Features that some requests report; others cannot be compared. */
function gridsOf(both: readonly Observation[]): readonly Grid[] {
  const grids = [
    ...lengths.map(([name, of, isCopied]) => lengthGrid(name, of, both, isCopied)),
    nameGrid("shares of tenants", ({ tenant }) => tenant, both, true),
  ];
  return grids.filter(({ numBins, values }) => numBins > (values === undefined ? 1 : 0));
}

function ruleOfThumb(labelled: PatternSides, settings: TrafficDriftSettings): RuleOfThumb {
  const evaluators = evaluatorsOf([...labelled.production, ...labelled.evaluation].map(({ seen }) => seen));
  const ran = new Set(labelled.evaluation.map(({ pattern }) => pattern));
  const tripped = labelled.production.some(({ pattern }) => !ran.has(pattern)) && ran.size > 0;
  const rows = patterns.map((name) => {
    const inPattern = (side: readonly Labelled[]) => side.filter(({ pattern }) => pattern === name);
    return [
      name,
      inPattern(labelled.production).length,
      inPattern(labelled.evaluation).length,
      ...evaluators.flatMap((evaluator) => [
        meanScore(inPattern(labelled.production), evaluator),
        meanScore(inPattern(labelled.evaluation), evaluator),
      ]),
    ];
  });
  const { burstFactor, sustainedShare, requestsPerReplica } = settings;
  return {
    rule: `in a window of ${settings.windowMs / 1000} s around a request: peak queue depth over ${burstFactor} times the mean is burst, mean over ${sustainedShare} × replicas × ${requestsPerReplica} is sustained, else steady; a pattern of production that the evaluation has not must be in the next run`,
    tripped,
    columns: [
      "pattern",
      settings.production,
      settings.evaluation,
      ...evaluators.flatMap((name) => [`${name}, ${settings.production}`, `${name}, ${settings.evaluation}`]),
    ],
    rows,
  };
}

function meanScore(side: readonly Labelled[], evaluator: string): number | null {
  return roundedMean(side.flatMap(({ seen }) => seen.scores[evaluator] ?? []));
}

function sampleSize(
  sides: Sides,
  production: readonly Observation[],
  evaluation: readonly Observation[],
  { lengthMargin, alpha, power }: TrafficDriftSettings,
): SampleSize {
  const have = Math.min(production.length, evaluation.length);
  // distance of two samples of one distribution: about sqrt(2 / n) deviations; half the margin leaves room for the rest
  const independent = Math.ceil(8 / lengthMargin ** 2);
  return {
    have,
    needed: sides.production.length === 0 || sides.evaluation.length === 0 ? undefined : independent,
    alpha,
    power,
    basis:
      "requests on each side with which chance alone keeps lengths within half their margin, if requests were independent; the intervals do not assume it",
  };
}

function notesOn(
  production: readonly Observation[],
  evaluation: readonly Observation[],
  sides: Sides,
  labelled: PatternSides,
): readonly string[] {
  const notes: string[] = [];
  for (const [name, seen, blocks] of [
    ["production", production, sides.production],
    ["evaluation", evaluation, sides.evaluation],
  ] as const) {
    if (seen.length === 0)
      notes.push(
        `There are no requests of the ${name}${name === "production" ? ": give a file of its spans as the setting recording, or spans under the condition production" : ""}.`,
      );
    else if (blocks.length === 0)
      notes.push(`All requests of the ${name} came at one moment: no rate can be told.`);
    else
      notes.push(
        `${name}: ${seen.length} requests, ${shown(rateOf(blocks, ones(blocks)))} a second, index of dispersion ${shown(dispersionOf(blocks, ones(blocks)))}.`,
      );
  }
  const distances = lengths.flatMap(([name, of]) => {
    const [sent, evaluated] = [production, evaluation].map((seen) => seen.flatMap((one) => of(one) ?? []));
    if (sent!.length === 0 || evaluated!.length === 0) return [];
    return [`${name} ${kolmogorovSmirnov(sent!, evaluated!).statistic.toFixed(3)}`];
  });
  if (distances.length > 0)
    notes.push(
      `Kolmogorov-Smirnov distances: ${distances.join(", ")}. Their p values assume that requests are independent, which arrivals of one burst are not.`,
    );
  if (labelled.production.length < production.length || labelled.evaluation.length < evaluation.length)
    notes.push(
      "Some requests do not say how deep the queue was when they came (cluster.queue_depth, x-octavo-queue-depth): they have no pattern.",
    );
  if ([...labelled.production, ...labelled.evaluation].some(({ seen }) => seen.replicaCount === undefined))
    notes.push("Where the number of replicas is not known, one is assumed.");
  return notes;
}

function summarise(
  hypotheses: readonly Hypothesis[],
  verdict: CheckResult["verdict"],
  replayed: boolean,
): string {
  const failed = hypotheses.filter((one) => one.verdict === "fail");
  const open = hypotheses.filter((one) => one.verdict === "inconclusive");
  const list = (some: readonly Hypothesis[]) =>
    some.map(({ name, estimate, margin }) => `${name} ${shown(estimate)} (allowed ${margin})`).join("; ");
  if (verdict === "fail")
    return `The evaluation is not of production's traffic${replayed ? ", though replayed" : ""}: ${list(failed)}.`;
  if (verdict === "pass" && replayed)
    return "Under production's own arrivals and tenants, the cases are within every margin of it.";
  if (verdict === "pass") return "The evaluation's traffic is production's, within every margin.";
  if (hypotheses.length === 0) return "There is nothing to compare.";
  return `Not decided: ${list(open)}.`;
}

/** Requests per hundredth of each side's time. */
function arrivalSeries(
  production: readonly Observation[],
  evaluation: readonly Observation[],
): readonly Chart[] {
  const line = (label: string, seen: readonly Observation[]) => {
    const beginMs = seen[0]!.scheduledEpochMs;
    const lengthMs = Math.max(1, seen.at(-1)!.scheduledEpochMs - beginMs);
    const counts = Array.from({ length: 100 }, () => 0);
    for (const { scheduledEpochMs } of seen)
      counts[Math.min(99, Math.floor((100 * (scheduledEpochMs - beginMs)) / lengthMs))]! += 1;
    const perSecond = 100_000 / lengthMs;
    return { label, points: counts.map((count, index) => [index, count * perSecond] as const) };
  };
  if (production.length < 2 || evaluation.length < 2) return [];
  return [
    {
      kind: "series",
      title: "Arrivals",
      xLabel: "hundredths of the recorded time",
      yLabel: "requests a second",
      lines: [line("production", production), line("evaluation", evaluation)],
    },
  ];
}

function shown(value: number | undefined): string {
  return value === undefined ? "unknown" : String(Number(value.toPrecision(3)));
}
