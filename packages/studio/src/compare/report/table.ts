import type { ModelComparison } from "../compare.js";
import { activationRows, figure, fixed, gibibytes, intervalText, percent } from "./format.js";
import type { Cell } from "./summary.js";
import type { ComparisonVerdict } from "./verdict.js";

/** A comparison as text: the verdict and its reasons, then the figures with their 95 % intervals below them. */
export function renderTable(comparison: ModelComparison): string {
  const { baseline, variant, data, method, verdict, summary } = comparison;
  const lines = [
    `${verdict.verdict.toUpperCase()}: ${variant.model} against ${baseline.model}`,
    ...verdict.reasons.map((reason) => `- ${reason}`),
    "",
    ...align([
      ["", "baseline", "variant"],
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
    ...cells("role", [summary.overall, ...summary.byRole]),
    "",
    ...cells("place in answer", summary.byPosition),
    "",
    ...evidence(verdict),
  ];
  return `${lines.join("\n")}\n`;
}

function cells(title: string, rows: readonly Cell[]): string[] {
  return align([
    [title, "tokens", "KL mean", "KL p99", "KL max", "top-1 flips", "perplexity ratio"],
    ...rows.flatMap((cell) => [
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
  ]);
}

function evidence(verdict: ComparisonVerdict): string[] {
  const limit = figure(verdict.noticeableNats);
  return [
    `Nats per answer (${verdict.tokensPerAnswer.toFixed(1)} tokens); up to ${limit} no observer of one answer knows its model 3 times in 4`,
    ...align([
      ["", "mean", "95 % interval", "at most"],
      ...verdict.distances.map(({ name, natsPerAnswer, atMost }) => [
        name,
        figure(natsPerAnswer.value),
        intervalText(natsPerAnswer, figure),
        atMost === undefined ? "-" : figure(atMost),
      ]),
    ]),
    "",
    ...(verdict.exactness.length === 0
      ? []
      : align([
          [
            "written exactly by greedy decoding",
            "baseline",
            "variant",
            "of",
            "lost in",
            "gained in",
            "p (Holm)",
          ],
          ...verdict.exactness.map((row) => [
            row.name,
            String(row.baselineExact),
            String(row.variantExact),
            String(row.answers),
            String(row.conversationsLost),
            String(row.conversationsGained),
            row.adjustedP.toPrecision(2),
          ]),
        ])),
  ];
}

function align(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .filter((line) => line !== "");
}
