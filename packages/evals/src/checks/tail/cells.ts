import type { Observation } from "../observation.js";
import { clusterMean, type ClusteredScore, type ClusterMean } from "../judging/cluster-mean.js";
import { evaluatorsOf } from "../judging/pairs.js";
import type { TailSettings } from "./settings.js";

/** A score with the prompt length and its position in the answer, in tokens. */
export interface PlacedScore extends ClusteredScore {
  readonly caseId: string;
  readonly evaluator: string;
  readonly promptTokens: number;
  readonly fromToken: number;
  readonly toToken: number;
  readonly output: string | undefined;
}

export interface Placed {
  readonly scores: readonly PlacedScore[];
  /** Answers without parts: their one score stands where they end. */
  readonly wholeAnswers: number;
  readonly withoutLengths: number;
}

/** Scores of parts of answers where there are any, else those of whole answers. */
export function placeScores(observations: readonly Observation[]): Placed {
  const evaluators = evaluatorsOf(observations);
  const scores: PlacedScore[] = [];
  let wholeAnswers = 0;
  let withoutLengths = 0;
  for (const { caseId, cluster = caseId, promptTokens, completionTokens, parts, ...seen } of observations) {
    if (seen.failureCode !== undefined) continue;
    if (promptTokens === undefined) {
      withoutLengths++;
      continue;
    }
    const place = { caseId, cluster, promptTokens, output: seen.output };
    if (parts !== undefined && parts.length > 0) {
      for (const part of parts) scores.push({ ...place, ...part });
      continue;
    }
    const values = evaluators.flatMap((evaluator) => {
      const value = seen.scores[evaluator] ?? undefined;
      return value === undefined ? [] : [{ evaluator, value }];
    });
    if (values.length === 0) continue;
    if (completionTokens === undefined) {
      withoutLengths++;
      continue;
    }
    wholeAnswers++;
    const last = Math.max(0, completionTokens - 1);
    scores.push(...values.map((one) => ({ ...place, ...one, fromToken: last, toToken: completionTokens })));
  }
  return { scores, wholeAnswers, withoutLengths };
}

/** One evaluator's scores by length of the prompt (rows) and position in the answer (columns); undefined where there are none. */
export interface CellTable {
  readonly evaluator: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly cells: readonly (readonly (ClusterMean | undefined)[])[];
  readonly scores: readonly (readonly (readonly PlacedScore[])[])[];
}

export function tabulate(scores: readonly PlacedScore[], settings: TailSettings): readonly CellTable[] {
  const { promptEdges, outputEdges } = settings;
  const evaluators = [...new Set(scores.map(({ evaluator }) => evaluator))];
  return evaluators.map((evaluator) => {
    const placed: PlacedScore[][][] = Array.from({ length: promptEdges.length + 1 }, () =>
      Array.from({ length: outputEdges.length + 1 }, () => []),
    );
    for (const score of scores) {
      if (score.evaluator !== evaluator) continue;
      placed[bucketOf(score.promptTokens, promptEdges)]![bucketOf(score.fromToken, outputEdges)]!.push(score);
    }
    return {
      evaluator,
      rows: promptLabels(promptEdges),
      columns: outputLabels(outputEdges),
      cells: placed.map((row) => row.map((cell) => clusterMean(cell))),
      scores: placed,
    };
  });
}

/** All scores of cells that are no longer in either direction than the cell, without its own. */
export function shorterThan(table: CellTable, row: number, column: number): ClusterMean | undefined {
  const shorter = table.scores
    .slice(0, row + 1)
    .flatMap((cells, i) => cells.slice(0, column + 1).filter((_, j) => i !== row || j !== column));
  return clusterMean(shorter.flat());
}

function bucketOf(tokens: number, edges: readonly number[]): number {
  const index = edges.findIndex((edge) => tokens < edge);
  return index < 0 ? edges.length : index;
}

function promptLabels(edges: readonly number[]): readonly string[] {
  const name = (tokens: number): string =>
    tokens >= 1000 && tokens % 1000 === 0 ? `${tokens / 1000}k` : String(tokens);
  const lows = [0, ...edges];
  return lows.map((low, index) =>
    index < edges.length ? `${name(low)}-${name(edges[index]!)}` : `${name(low)}+`,
  );
}

function outputLabels(edges: readonly number[]): readonly string[] {
  return [
    `first ${edges[0]}`,
    ...edges.map((low, index) => (index + 1 < edges.length ? `${low}-${edges[index + 1]}` : `${low}+`)),
  ];
}
