import type { Advice, Chart, Hypothesis, MovedCase, RuleOfThumb, SampleSize } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectTail } from "./collect.js";
import { shufflePlaces } from "../judging/placebos.js";
import type { Observation } from "../observation.js";
import { type ClusterMean, dropBelow, meanIntervalOver } from "../judging/cluster-mean.js";
import { points } from "../judging/loss-effect.js";
import { rounded } from "../judging/rounded.js";
import { decide, marginEffect, overallVerdict, type TestedEffect } from "../judging/verdicts.js";
import { type CellTable, placeScores, shorterThan, tabulate } from "./cells.js";
import { tailSettings, type TailSettings } from "./settings.js";
import { slopes } from "./slopes.js";
import { clustersForDrop } from "./plan.js";

/** A cell that is held against the shorter ones. */
interface TestedCell {
  readonly table: CellTable;
  readonly row: number;
  readonly column: number;
  readonly cell: ClusterMean;
  readonly reference: ClusterMean;
  readonly effect: TestedEffect;
}

/**
 * Do answers get worse the longer the prompt is and the further into the answer one looks? Every cell of prompt length and
 * position in the answer is compared with all cells that are shorter. Cells differ in their cases: use cases that differ in
 * length alone, such as RULER's, or what looks like length is difficulty.
 */
export const tailCheck = defineCheck({
  name: "tail",
  question: "Do long prompts and late parts of long answers score worse than the average lets see?",
  settings: tailSettings,
  needs: ["cases"],
  collect: collectTail,
  placebo: () => shufflePlaces,
  judge(observations, settings) {
    const seen = observations.filter(({ condition }) => condition === settings.condition);
    const placed = placeScores(seen);
    const tables = tabulate(placed.scores, settings);
    const tested = tables.flatMap((table) => testCells(table, settings));
    const hypotheses = decide(
      tested.map(({ effect }) => effect),
      settings.alpha,
    );
    const failures = seen.filter(({ failureCode }) => failureCode !== undefined).length;
    const isIncomplete = failures > settings.maxMissingShare * seen.length;
    const untested = tables.flatMap((table) => untestedCells(table, settings));
    const verdict = overallVerdict(hypotheses, !isIncomplete && untested.length === 0);
    const cut = seen.filter(({ finishReason }) => finishReason === "length").length;
    const fitted = slopes(placed.scores, 1 - settings.alpha);
    return {
      verdict,
      summary: summaryOf(hypotheses, tables, untested),
      ruleOfThumb: ruleOfThumb(seen, settings),
      hypotheses,
      sampleSize: sampleSizeOf(tested, settings),
      advice: verdict === "pass" ? [] : adviceFor(tested, hypotheses, untested),
      movedCases: worstParts(tested, hypotheses),
      figures: [...tables.map((table) => heatmap(table, settings)), ...fitted.figures],
      notes: [
        seen.length === 0 && `there is no answer under the condition ${JSON.stringify(settings.condition)}`,
        placed.wholeAnswers > 0 &&
          `${placed.wholeAnswers} answers were scored as a whole: their score stands at their last token`,
        placed.withoutLengths > 0 &&
          `${placed.withoutLengths} answers do not say how long they are: left out`,
        cut > 0 && `${cut} answers were cut at max_tokens: their last parts are unfinished`,
        failures > 0 && `${failures} requests failed: they have no scores`,
        ...tables.flatMap((table) => emptyCells(table, settings)),
        ...fitted.notes,
      ],
    };
  },
});

function testCells(table: CellTable, settings: TailSettings): readonly TestedCell[] {
  const { margin, alpha, minClusters } = settings;
  return table.cells.flatMap((cells, row) =>
    cells.flatMap((cell, column) => {
      const reference = shorterThan(table, row, column);
      if (cell === undefined || reference === undefined) return [];
      if (Math.min(cell.clusters.size, reference.clusters.size) < minClusters) return [];
      const { drop, interval, pValue } = dropBelow(reference, cell, margin, 1 - alpha);
      const effect = marginEffect(
        {
          name: `${table.evaluator}: ${nameOf(table, row, column)}`,
          method: "difference from the shorter cells, cluster-robust",
          estimate: drop,
          interval,
          pValue,
        },
        settings,
      );
      return [{ table, row, column, cell, reference, effect }];
    }),
  );
}

/** Cells with scores and with shorter ones that cannot be held against them: too few cases on either side. */
function untestedCells(table: CellTable, { minClusters }: TailSettings): readonly string[] {
  return table.cells.flatMap((cells, row) =>
    cells.flatMap((cell, column) => {
      const reference = shorterThan(table, row, column);
      if (cell === undefined || reference === undefined) return [];
      if (Math.min(cell.clusters.size, reference.clusters.size) >= minClusters) return [];
      return [`${table.evaluator}: ${nameOf(table, row, column)}`];
    }),
  );
}

function nameOf(table: CellTable, row: number, column: number): string {
  return `prompts ${table.rows[row]} × output ${table.columns[column]}`;
}

function summaryOf(
  hypotheses: readonly Hypothesis[],
  tables: readonly CellTable[],
  untested: readonly string[],
): string {
  if (tables.length === 0) return "Nothing was scored: there is no answer with scores and token counts.";
  const [worst] = hypotheses.toSorted((a, b) => (b.estimate ?? 0) - (a.estimate ?? 0));
  if (worst === undefined) return "No cell has enough cases to be held against a shorter one.";
  const failed = hypotheses.filter(({ verdict }) => verdict === "fail");
  const shown = failed.toSorted((a, b) => (b.estimate ?? 0) - (a.estimate ?? 0))[0] ?? worst;
  const { estimate = 0, interval, margin = 0 } = shown;
  const bounds = interval === undefined ? "" : `${points(interval[0])} to ${points(interval[1])}; `;
  const figures = `${shown.name} is ${points(estimate)} points below the shorter cells (${bounds}margin ${points(margin)})`;
  if (failed.length > 0)
    return `Quality falls off: ${figures}; ${failed.length} of ${hypotheses.length} cells are beyond the margin.`;
  const undecided = hypotheses.filter(({ verdict }) => verdict !== "pass").length;
  if (undecided === 0 && untested.length > 0)
    return `Not decided: ${untested.length} cells have answers and too few cases to be tested, such as ${untested[0]!}; the lowest of the others: ${figures}.`;
  return undecided === 0
    ? `No cell falls below the shorter ones by more than the margin; the lowest: ${figures}.`
    : `Not decided: ${undecided} of ${hypotheses.length} cells need more cases; the lowest: ${figures}.`;
}

/** Each slice of an answer is scored as one text, as published; recordings without such scores have only those of parts. */
function ruleOfThumb(seen: readonly Observation[], settings: TailSettings): RuleOfThumb {
  const inSlices = seen.map((one) => (one.slices === undefined ? one : { ...one, parts: one.slices }));
  const tables = tabulate(placeScores(inSlices).scores, settings);
  const ofParts = seen.filter(({ parts, slices }) => parts !== undefined && slices === undefined).length;
  const averaged = ofParts > 0 ? ` Of ${ofParts} answers parts were averaged instead of scoring slices.` : "";
  let tripped = false;
  const rows: (string | number | null)[][] = [];
  for (const table of tables) {
    const all = table.cells.flat().filter((cell) => cell !== undefined);
    for (const [row, cells] of table.cells.entries()) {
      if (cells.every((cell) => cell === undefined)) continue;
      rows.push([table.evaluator, table.rows[row]!, ...cells.map((cell) => rounded(cell?.mean ?? null))]);
    }
    for (const cell of all) {
      const rest = all.filter((other) => other !== cell);
      const count = rest.reduce((sum, other) => sum + other.count, 0);
      const mean = rest.reduce((sum, other) => sum + other.mean * other.count, 0) / Math.max(1, count);
      if (rest.length > 0 && mean - cell.mean >= settings.cliff) tripped = true;
    }
  }
  return {
    rule: `Scores by prompt length and output position; look for the cell that drops a cliff against the rest (here: ${points(settings.cliff)} points below their mean).${averaged}`,
    tripped,
    columns: ["evaluator", "prompt tokens", ...(tables[0]?.columns ?? []).map((name) => `output ${name}`)],
    rows,
  };
}

function heatmap(table: CellTable, { alpha }: TailSettings): Chart {
  return {
    kind: "heatmap",
    title: `${table.evaluator} by prompt length and place in the answer`,
    xLabel: "output tokens",
    yLabel: "prompt tokens",
    x: table.columns,
    y: table.rows,
    cells: table.cells.map((row) =>
      row.map((cell) =>
        cell === undefined
          ? null
          : { value: cell.mean, count: cell.count, interval: meanIntervalOver(cell, 1 - alpha) },
      ),
    ),
  };
}

function sampleSizeOf(tested: readonly TestedCell[], settings: TailSettings): SampleSize {
  const { alpha, power, margin } = settings;
  const [smallest] = tested.toSorted((a, b) => a.cell.clusters.size - b.cell.clusters.size);
  if (smallest === undefined)
    return { have: 0, needed: undefined, alpha, power, basis: "no cell could be held against a shorter one" };
  const needed = clustersForDrop(smallest.reference, smallest.cell, { alpha, power, margin });
  const { table, row, column, cell } = smallest;
  return {
    have: cell.clusters.size,
    needed,
    alpha,
    power,
    basis: `independent cases in ${nameOf(table, row, column)}, the smallest cell, to show a drop within ${points(margin)} points at the variance seen`,
  };
}

function emptyCells(table: CellTable, { minClusters }: TailSettings): Judgement["notes"] {
  const thin: string[] = [];
  const empty: string[] = [];
  for (const [row, cells] of table.cells.entries()) {
    for (const [column, cell] of cells.entries()) {
      if (cell === undefined) empty.push(nameOf(table, row, column));
      else if (cell.clusters.size < minClusters) thin.push(nameOf(table, row, column));
    }
  }
  return [
    empty.length > 0 && `${table.evaluator}: nothing in ${empty.join(", ")}`,
    thin.length > 0 &&
      `${table.evaluator}: fewer than ${minClusters} independent cases in ${thin.join(", ")}: not tested`,
  ];
}

function worstParts(tested: readonly TestedCell[], hypotheses: readonly Hypothesis[]): readonly MovedCase[] {
  return tested
    .flatMap(({ table, row, column, reference }, index) =>
      hypotheses[index]?.verdict !== "fail"
        ? []
        : table.scores[row]![column]!.map((score) => ({
            caseId: score.caseId,
            what: `${table.evaluator}: tokens ${score.fromToken} to ${score.toToken} scored ${Math.round(score.value * 100) / 100}, with a prompt of ${score.promptTokens}`,
            before: undefined,
            after: score.output,
            severity: reference.mean - score.value,
          })),
    )
    .filter(({ severity }) => severity > 0);
}

function adviceFor(
  tested: readonly TestedCell[],
  hypotheses: readonly Hypothesis[],
  untested: readonly string[],
): readonly Advice[] {
  const failed = tested.filter((_cell, index) => hypotheses[index]?.verdict === "fail");
  const advice: Advice[] = [];
  if (failed.some(({ row }) => row > 0)) {
    const first = Math.min(...failed.filter(({ row }) => row > 0).map(({ row }) => row));
    const from = failed[0]!.table.rows[first]!;
    advice.push(
      {
        knob: "gateway route",
        change: `send prompts of ${from} tokens and more to a model that holds them, or shorten them first (retrieve less, summarise)`,
        because: "the model answers worse there whatever the server does",
      },
      {
        knob: "--max-model-len",
        change: `refuse what lies beyond: set it below ${from}`,
        because: "a clear refusal is better than a wrong answer",
      },
      {
        knob: "--hf-overrides rope_scaling, --kv-cache-dtype",
        change: "check that the positions' scaling is the model card's, and try bf16 for the KV cache",
        because: "both touch long contexts first",
      },
    );
  }
  if (failed.some(({ column }) => column > 0))
    advice.push({
      knob: "max_tokens",
      change: "ask for long answers in several requests, or cap them before the cell that falls off",
      because: "what is written late scores worse than what is written early",
    });
  if (untested.length > 0)
    advice.push({
      knob: "prompt_edges, output_edges",
      change: `add cases of the lengths of ${untested.slice(0, 3).join(", ")}, or set edges that join them with their neighbours`,
      because: "a cell that was not tested may be the one that falls off",
    });
  if (hypotheses.length === 0 || hypotheses.some(({ verdict }) => verdict === "inconclusive"))
    advice.push({
      knob: "cases",
      change: "add cases of the lengths whose cells are not decided",
      because: "their intervals still reach past the margin",
    });
  return advice;
}
