import type { Interval } from "@octavo/statistics";
import type { Evaluator } from "../evaluators/evaluator.js";
import { CascadeTally } from "../judges/cascade.js";
import { PlaceTally } from "../judges/pairwise.js";
import type { EvalReport } from "../report/report.js";
import type { CaseRow } from "./case-row.js";

/** A judge that changes its mind with the order in more pairs than this is not worth asking about small differences. */
const mostDisagreement = 0.2;
const confidence = 0.95;

interface Tally {
  readonly evaluator: string;
  readonly target: string;
  readonly places: PlaceTally;
  readonly cascade: CascadeTally;
}

/** How judges came to their verdicts, counted as cases come: what the order of two answers decided, and what a cascade saved. */
export class JudgingTally {
  readonly #tallies = new Map<string, Tally>();

  add({ answers }: CaseRow): void {
    for (const [target, { scores }] of Object.entries(answers))
      for (const [evaluator, score] of Object.entries(scores)) {
        if (score.status !== "scored" || score.details === undefined) continue;
        const { places, cascade } = this.#of(evaluator, target);
        places.add(score);
        cascade.add(score);
      }
  }

  report(evaluators: readonly Evaluator[]): Pick<EvalReport, "comparisons" | "cascades"> {
    const judges = new Map(evaluators.map(({ name, judge }) => [name, judge]));
    const comparisons = [...this.#tallies.values()].flatMap(({ evaluator, target, places: { bias } }) => {
      const { numPairs } = bias;
      if (numPairs === 0) return [];
      const [disagreement, firstPreferred] = [estimated(bias.disagreement), estimated(bias.firstPreferred)];
      return [{ evaluator, judge: judges.get(evaluator), target, numPairs, disagreement, firstPreferred }];
    });
    const cascades = [...this.#tallies.values()].flatMap(({ evaluator, target, cascade }) => {
      const found = cascade.report(confidence);
      return found.numScored === 0
        ? []
        : [{ evaluator, target, ...found, agreement: estimated(found.agreement) }];
    });
    return {
      ...(comparisons.length === 0 ? {} : { comparisons }),
      ...(cascades.length === 0 ? {} : { cascades }),
    };
  }

  /** Judges whose preferences were shown to depend on the place too often, and stages that failed. */
  warnings(): readonly string[] {
    return [...this.#tallies.values()].flatMap(({ evaluator, target, places: { bias }, cascade }) => {
      const { disagreement } = bias;
      const stages = cascade
        .report(confidence)
        .problems.map((problem) => `${evaluator} on ${target}: a stage of the cascade failed: ${problem}`);
      if (disagreement === undefined || disagreement.interval[0] <= mostDisagreement) return stages;
      const share = `${(100 * disagreement.estimate).toFixed(0)} %`;
      return [
        ...stages,
        `${evaluator} on ${target}: in ${share} of ${bias.numPairs} pairs the order decided which answer was better; they count as ties, and small differences cannot be seen`,
      ];
    });
  }

  #of(evaluator: string, target: string): Tally {
    const key = JSON.stringify([evaluator, target]);
    const known = this.#tallies.get(key);
    if (known !== undefined) return known;
    const made = { evaluator, target, places: new PlaceTally(), cascade: new CascadeTally() };
    this.#tallies.set(key, made);
    return made;
  }
}

function estimated(found: { readonly estimate: number; readonly interval: Interval } | undefined) {
  return found === undefined ? undefined : { ...found, confidence };
}
