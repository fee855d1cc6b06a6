import { figureTable } from "@octavo/report/text-table";
import type { ModelComparison } from "../compare.js";
import { activationRows, figure, fixed, gibibytes, intervalText, percent } from "./format.js";
import type { Cell } from "./summary.js";
import type { ComparisonVerdict } from "./verdict.js";

/**
 * A comparison as text: the verdict and its reasons, then the figures with their 95 % intervals below them. Tables wrap to `width`, that of
 * the terminal where there is one.
 */
export function renderTable(comparison: ModelComparison, width?: number): string {
  const { baseline, variant, data, method, verdict, summary } = comparison;
  const lines = [
    `${verdict.verdict.toUpperCase()}: ${variant.model} against ${baseline.model}`,
    ...verdict.reasons.map((reason) => `- ${reason}`),
    "",
    ...tableLines(["", "baseline", "variant"], width, [
      ["model", baseline.model, variant.model],
      ["weights in memory", gibibytes(baseline.weightBytes), gibibytes(variant.weightBytes)],
      ["KV cache", baseline.kvCacheDtype, variant.kvCacheDtype],
      ...activationRows(baseline, variant),
      [
        "perplexity",
        fixed(summary.overall.baselinePerplexity.value),
        fixed(summary.overall.variantPerplexity.value),
      ],
    ]),
    "",
    `${data.path}: ${data.conversations} conversations, ${data.answers} answers, ${data.tokens} tokens scored`,
    `${method.direction} per token; 95 % intervals from ${method.resamples} resamples of conversations, seed ${method.seed}`,
    "",
    ...cells("role", [summary.overall, ...summary.byRole], width),
    "",
    ...cells("place in answer", summary.byPosition, width),
    "",
    ...evidence(verdict, width),
  ];
  return `${lines.join("\n")}\n`;
}

function cells(title: string, rows: readonly Cell[], width: number | undefined): string[] {
  const heads = [title, "tokens", "KL mean", "KL p99", "KL max", "top-1 flips", "perplexity ratio"];
  return tableLines(
    heads,
    width,
    rows.flatMap((cell) => [
      [
        cell.name,
        String(cell.tokens),
        figure(cell.kl.value),
        figure(cell.klQuantiles.p99),
        figure(cell.klQuantiles.max),
        `${cell.numFlips} (${percent(cell.flips.value)})`,
        fixed(cell.perplexityRatio.value),
      ],
      [
        "",
        "",
        intervalText(cell.kl, figure),
        "",
        "",
        intervalText(cell.flips, percent),
        intervalText(cell.perplexityRatio, fixed),
      ],
    ]),
  );
}

function evidence(verdict: ComparisonVerdict, width: number | undefined): string[] {
  const limit = figure(verdict.noticeableNats);
  return [
    `Nats per answer (${verdict.tokensPerAnswer.toFixed(1)} tokens); up to ${limit} no observer of one answer knows its model 3 times in 4`,
    ...tableLines(
      ["", "mean", "95 % interval", "at most"],
      width,
      verdict.distances.map(({ name, natsPerAnswer, atMost }) => [
        name,
        figure(natsPerAnswer.value),
        intervalText(natsPerAnswer, figure),
        atMost === undefined ? "-" : figure(atMost),
      ]),
    ),
    "",
    ...(verdict.exactness.length === 0
      ? []
      : tableLines(
          [
            "written exactly by greedy decoding",
            "baseline",
            "variant",
            "of",
            "lost in",
            "gained in",
            "p (Holm)",
          ],
          width,
          verdict.exactness.map((row) => [
            row.name,
            String(row.baselineExact),
            String(row.variantExact),
            String(row.answers),
            String(row.conversationsLost),
            String(row.conversationsGained),
            row.adjustedP.toPrecision(2),
          ]),
        )),
  ];
}

function tableLines(
  heads: readonly string[],
  width: number | undefined,
  rows: readonly (readonly string[])[],
): string[] {
  return figureTable(heads, rows, width)
    .split("\n")
    .filter((line) => line !== "");
}
