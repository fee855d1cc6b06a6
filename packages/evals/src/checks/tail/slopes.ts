import { clusterRobustRegression } from "@octavo/statistics";
import type { Chart } from "../check.js";
import { points } from "../judging/loss-effect.js";
import type { PlacedScore } from "./cells.js";

const predictors = [
  { name: "prompt length", of: ({ promptTokens }: PlacedScore) => Math.log2(1 + promptTokens) },
  { name: "place in the answer", of: ({ fromToken }: PlacedScore) => Math.log2(1 + fromToken) },
] as const;

/**
 * The effect on a score of each doubling of the prompt and of the position in the answer: least squares on both logarithms, errors
 * robust to clusters. It sums up a slow decline that no single cell shows, and decides nothing.
 */
export function slopes(
  scores: readonly PlacedScore[],
  confidence: number,
): { readonly figures: readonly Chart[]; readonly notes: readonly string[] } {
  const rows: { label: string; estimate: number; interval: readonly [number, number] }[] = [];
  const notes: string[] = [];
  for (const evaluator of new Set(scores.map((score) => score.evaluator))) {
    const own = scores.filter((score) => score.evaluator === evaluator);
    const varying = predictors.filter(({ of }) => own.some((score) => of(score) !== of(own[0]!)));
    const clusters = own.map(({ cluster }) => cluster);
    if (varying.length === 0 || new Set(clusters).size <= varying.length + 1) continue;
    const x = own.map((score) => varying.map(({ of }) => of(score)));
    if (areCollinear(x)) {
      notes.push(
        `${evaluator}: longer prompts came with longer answers, so that their effects cannot be separated`,
      );
      continue;
    }
    const { coefficients } = clusterRobustRegression(
      {
        outcomes: own.map(({ value }) => value),
        predictors: x,
        names: varying.map(({ name }) => name),
        clusters,
      },
      confidence,
    );
    for (const { name, estimate, interval } of coefficients.slice(1)) {
      rows.push({ label: `${evaluator}: ${name}`, estimate, interval });
      notes.push(
        `${evaluator}: each doubling of the ${name} changes the score by ${points(estimate)} points (${points(interval[0])} to ${points(interval[1])})`,
      );
    }
  }
  const figures: Chart[] =
    rows.length === 0
      ? []
      : [
          {
            kind: "intervals",
            title: "Change of the score with each doubling",
            unit: "share",
            rows,
          },
        ];
  return { figures, notes };
}

/** Whether two predictors are a line, up to rounding. */
function areCollinear(rows: readonly (readonly number[])[]): boolean {
  if ((rows[0]?.length ?? 0) < 2) return false;
  const mean = (index: number): number => rows.reduce((sum, row) => sum + row[index]!, 0) / rows.length;
  const [a, b] = [mean(0), mean(1)];
  let [both, left, right] = [0, 0, 0];
  for (const row of rows) {
    const [x, y] = [row[0]! - a, row[1]! - b];
    both += x * y;
    left += x * x;
    right += y * y;
  }
  return both ** 2 > (1 - 1e-9) * left * right;
}
