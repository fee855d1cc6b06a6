import { estimate } from "../gate/estimate.js";
import type { HealthExpectation } from "../gate/expectation.js";
import type { Measurements } from "../gate/measurements.js";
import type { EvaluatorSummary } from "../report/report.js";

const confidence = 0.95;

/** Pass rates and means of every evaluator on every target, with their intervals. */
export function summariseEvaluators(
  measurements: Measurements,
  evaluators: readonly string[],
  targets: readonly string[],
  seed: number,
): readonly EvaluatorSummary[] {
  return evaluators.flatMap((evaluator) =>
    targets.map((target): EvaluatorSummary => {
      const { scored, skipped, failed } = measurements.scoreCounts(target, evaluator);
      const passed = measurements.passes(target, evaluator).filter((value) => value === 1).length;
      const figure = (measure: HealthExpectation["measure"]): EvaluatorSummary["mean"] => {
        const found = estimate(whole(measure, target), measurements, { seed });
        return found.estimate === undefined
          ? undefined
          : { estimate: found.estimate, interval: found.interval(confidence), confidence };
      };
      return {
        evaluator,
        target,
        scored,
        passed,
        skipped,
        failed,
        passRate: figure({ kind: "pass_rate", evaluator }),
        mean: figure({ kind: "mean", of: { kind: "score", evaluator } }),
      };
    }),
  );
}

/** A figure for its own sake: nothing is expected of it. */
function whole(measure: HealthExpectation["measure"], target: string): HealthExpectation {
  return {
    text: "",
    compare: "none",
    measure,
    comparator: ">=",
    bound: 0,
    target,
    confidence: undefined,
    byEstimate: false,
    method: undefined,
  };
}
