import type { BrokenEvaluator, CheckResult } from "../check.js";
import type { Observation } from "../observation.js";

/** Share of an evaluator's scores on one side of a comparison that may have failed. */
const mostFailedScores = 0.05;

interface Tally {
  failed: number;
  of: number;
}

/**
 * Judges, and draws no verdict from scores of an evaluator that often failed, as when its judge is down: which answers it
 * could score is no accident. A failure that shows without those scores stands.
 *
 * @param sideOf what a side of the comparison is: evaluators may fail on one side alone
 */
export function judgeUnlessBroken(
  judge: (observations: readonly Observation[]) => CheckResult,
  observations: readonly Observation[],
  sideOf: (observation: Observation) => string,
): CheckResult {
  const brokenEvaluators = brokenOf(observations, sideOf);
  const result = judge(observations);
  if (brokenEvaluators.length === 0) return result;
  const notes = [...result.notes, ...brokenEvaluators.map(says)];
  if (result.verdict === "fail") {
    const names = new Set(brokenEvaluators.map(({ evaluator }) => evaluator));
    const rest = judge(observations.map((one) => withoutScoresOf(names, one)));
    if (rest.verdict === "fail") return { ...rest, notes, brokenEvaluators };
  }
  const summary = `No verdict is drawn: ${says(brokenEvaluators[0]!)}. What it did score: ${result.summary}`;
  return { ...result, verdict: "inconclusive", summary, notes, brokenEvaluators };
}

function says({ evaluator, side, failed, of }: BrokenEvaluator): string {
  return `${evaluator} could not score ${failed} of ${of} outputs of ${side}, more than ${100 * mostFailedScores} %`;
}

function brokenOf(
  observations: readonly Observation[],
  sideOf: (observation: Observation) => string,
): readonly BrokenEvaluator[] {
  const sides = new Map<string, Map<string, Tally>>();
  for (const observation of observations) {
    const side = sideOf(observation);
    const tallies = sides.get(side) ?? new Map<string, Tally>();
    sides.set(side, tallies);
    const count = (evaluator: string, isFailed: boolean): void => {
      const tally = tallies.get(evaluator) ?? { failed: 0, of: 0 };
      tally.of += 1;
      if (isFailed) tally.failed += 1;
      tallies.set(evaluator, tally);
    };
    for (const [evaluator, value] of Object.entries(observation.scores))
      if (value !== null) count(evaluator, false);
    for (const { evaluator } of [...(observation.parts ?? []), ...(observation.slices ?? [])])
      count(evaluator, false);
    for (const evaluator of observation.failedScores ?? []) count(evaluator, true);
  }
  return [...sides].flatMap(([side, tallies]) =>
    [...tallies]
      .filter(([, { failed, of }]) => failed > mostFailedScores * of)
      .map(([evaluator, { failed, of }]) => ({ evaluator, side, failed, of })),
  );
}

function withoutScoresOf(names: ReadonlySet<string>, observation: Observation): Observation {
  const scores = Object.entries(observation.scores).filter(([name]) => !names.has(name));
  const { parts, slices } = observation;
  const isLeft = ({ evaluator }: { readonly evaluator: string }): boolean => !names.has(evaluator);
  return {
    ...observation,
    scores: Object.fromEntries(scores),
    ...(parts === undefined ? {} : { parts: parts.filter(isLeft) }),
    ...(slices === undefined ? {} : { slices: slices.filter(isLeft) }),
  };
}
