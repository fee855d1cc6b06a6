import { wilsonInterval, type Interval } from "@octavo/statistics";
import type { AuthoredEvaluator } from "./authored-evaluator.js";
import type { Values } from "./improve-evaluator.js";

/** Whether a judge still gives the verdicts that it gave when its evaluator was written. */
export interface JudgeDrift {
  readonly verdict: "steady" | "drifted" | "undecided";
  readonly summary: string;
  readonly numAnchors: number;
  /** Verdicts that are now other than when the version was written. */
  readonly numChanged: number;
  readonly interval: Interval | undefined;
}

/** More changed verdicts than this are drift. */
const tolerated = 0.05;

/** Whether a judge still says of the anchors what it said: a model behind an unchanged address may be another one. */
export function judgeDrift(
  { anchors, threshold }: AuthoredEvaluator,
  values: Values,
  confidence = 0.95,
): JudgeDrift {
  const pairs = Object.entries(anchors).flatMap(([caseId, before]) => {
    const now = values.get(caseId);
    return now === undefined ? [] : [{ before, now }];
  });
  const numAnchors = pairs.length;
  if (numAnchors === 0)
    return {
      verdict: "undecided",
      summary: "The file keeps no scores of these cases: improve it with labels first.",
      numAnchors,
      numChanged: 0,
      interval: undefined,
    };
  const numChanged = pairs.filter(({ before, now }) => before >= threshold !== now >= threshold).length;
  const interval = wilsonInterval(numChanged, numAnchors, confidence);
  const verdict = interval[0] > tolerated ? "drifted" : interval[1] <= 2 * tolerated ? "steady" : "undecided";
  const figures = `${numChanged} of ${numAnchors} verdicts are other than when this version was written (${(100 * interval[0]).toFixed(1)} to ${(100 * interval[1]).toFixed(1)} %, ${100 * tolerated} % tolerated)`;
  const said = {
    drifted: "The judge has drifted",
    steady: "The judge is steady",
    undecided: "Too few anchors to tell",
  };
  return { verdict, summary: `${said[verdict]}: ${figures}.`, numAnchors, numChanged, interval };
}
