import type { Comparison } from "../../compare.js";
import { figure, fixed, gibibytes, intervalText, percent } from "../format.js";
import type { Cell } from "../summary.js";
import { escapeHtml } from "./escape.js";
import { klHistogram } from "./histogram.js";
import { intervalChart } from "./interval-chart.js";
import { styles } from "./styles.js";

/**
 * A comparison as one HTML file: no script, nothing loaded from elsewhere. Charts are inline SVG whose rows take the
 * keyboard's focus and carry their figures as labels; the same figures stand in a table below each.
 */
export function renderHtml(comparison: Comparison): string {
  const { baseline, variant, data, method, verdict, summary } = comparison;
  const title = `${verdict.verdict}: ${variant.model} against ${baseline.model}`;
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escapeHtml(title)}</title><style>${styles}</style></head><body>`,
    '<a class="skip" href="#main">Skip to the figures</a>',
    `<header class="verdict ${verdict.verdict}"><p class="kicker">octavo compare</p><h1>${escapeHtml(verdict.verdict)}</h1>`,
    `<p><b>${escapeHtml(variant.model)}</b> against <b>${escapeHtml(baseline.model)}</b></p>`,
    `<ul>${verdict.reasons.map((reason) => `<li>${escapeHtml(reason)}</li>`).join("")}</ul></header>`,
    '<main id="main">',
    section("What was compared", models(comparison)),
    section(
      "By role",
      intervalChart({
        id: "role-kl",
        title: "Mean KL divergence by role",
        unit: "nats per token",
        rows: [summary.overall, ...summary.byRole].map(({ name, kl }) => ({ name, estimate: kl })),
        scale: "log",
        show: figure,
      }) +
        intervalChart({
          id: "role-flips",
          title: "Top-1 flips by role",
          unit: "share of tokens",
          rows: [summary.overall, ...summary.byRole].map(({ name, flips }) => ({ name, estimate: flips })),
          scale: "linear",
          show: percent,
        }) +
        cellTable("role", [summary.overall, ...summary.byRole]),
    ),
    section(
      "By place in the answer",
      intervalChart({
        id: "position-kl",
        title: "Mean KL divergence by place in the answer",
        unit: "nats per token",
        rows: summary.byPosition.map(({ name, kl }) => ({ name: `tokens ${name}`, estimate: kl })),
        scale: "log",
        show: figure,
      }) + cellTable("tokens of the answer", summary.byPosition),
    ),
    section(
      "Single tokens",
      klHistogram(summary.klHistogram, summary.overall.tokens) + worstTable(comparison),
    ),
    section("Evidence", evidence(comparison)),
    "</main>",
    `<footer><p>${escapeHtml(
      `${data.path}: ${data.conversations} conversations, ${data.answers} answers, ${data.tokens} of ${data.computedTokens} computed tokens scored. ` +
        `${method.direction}. Intervals hold 95 % of ${method.resamples} resamples of whole conversations (BCa, seed ${method.seed}). ${method.kernels}.`,
    )}</p></footer></body></html>`,
    "",
  ].join("\n");
}

function section(title: string, content: string): string {
  return `<section><h2>${escapeHtml(title)}</h2>${content}</section>`;
}

function models({ baseline, variant, summary }: Comparison): string {
  const { overall } = summary;
  return table(
    "The two artifacts",
    ["", "baseline", "variant"],
    [
      ["model", baseline.model, variant.model],
      ["architecture", baseline.architecture, variant.architecture],
      ["weights in memory", gibibytes(baseline.weightBytes), gibibytes(variant.weightBytes)],
      ["KV cache", baseline.kvCacheDtype, variant.kvCacheDtype],
      [
        "perplexity",
        `${fixed(overall.baselinePerplexity.value)} ${intervalText(overall.baselinePerplexity, fixed)}`,
        `${fixed(overall.variantPerplexity.value)} ${intervalText(overall.variantPerplexity, fixed)}`,
      ],
    ],
  );
}

function cellTable(first: string, cells: readonly Cell[]): string {
  return table(
    `Figures by ${first}, with 95 % intervals`,
    [first, "tokens", "KL mean", "KL p50", "KL p99", "KL max", "top-1 flips", "perplexity ratio"],
    cells.map((cell) => [
      cell.name,
      String(cell.tokens),
      `${figure(cell.kl.value)} ${intervalText(cell.kl, figure)}`,
      figure(cell.klQuantiles.p50),
      figure(cell.klQuantiles.p99),
      figure(cell.klQuantiles.max),
      `${cell.numFlips} = ${percent(cell.flips.value)} ${intervalText(cell.flips, percent)}`,
      `${fixed(cell.perplexityRatio.value)} ${intervalText(cell.perplexityRatio, fixed)}`,
    ]),
  );
}

function worstTable({ worst }: Comparison): string {
  if (worst.length === 0) return "<p>No token has any divergence.</p>";
  const rows = worst.map(
    (token) =>
      `<tr><td class="number">${escapeHtml(figure(token.kl))}</td><td>${escapeHtml(token.role)}</td><td class="number">${token.line}</td>` +
      `<td class="text">${escapeHtml(visible(token.context))}<mark>${escapeHtml(visible(token.target))}</mark></td>` +
      `<td><code>${escapeHtml(visible(token.baseline.token))}</code> ${escapeHtml(percent(token.baseline.probability))}</td>` +
      `<td><code>${escapeHtml(visible(token.variant.token))}</code> ${escapeHtml(percent(token.variant.probability))}</td></tr>`,
  );
  return (
    '<div class="scroll" tabindex="0" role="region" aria-label="Where the models differ most"><table><caption>Where they differ most: the data\'s token is marked</caption>' +
    '<thead><tr><th scope="col">KL</th><th scope="col">role</th><th scope="col">line</th><th scope="col">text</th><th scope="col">baseline\'s choice</th><th scope="col">variant\'s choice</th></tr></thead>' +
    `<tbody>${rows.join("")}</tbody></table></div>`
  );
}

function evidence({ verdict }: Comparison): string {
  const { distances, exactness, noticeableNats, tokensPerAnswer } = verdict;
  return (
    `<p>An observer is shown one answer and must say which model wrote it. With a divergence of up to ${escapeHtml(figure(noticeableNats))} nats in the answer ` +
    `even one who knows both models' probabilities is right at most 3 times in 4, the usual threshold of a noticeable difference (Pinsker's inequality). An answer of this data has ${tokensPerAnswer.toFixed(1)} tokens on average. ` +
    "Near-lossless: the upper bounds lie below that, and no exact answers were lost beyond chance. Drift: a lower bound lies above it, or answers were lost. " +
    "Either is wrong at most 5 % of the time by the luck of the data.</p>" +
    table(
      "Nats per answer",
      ["", "mean", "95 % interval", "upper bound (95 %)", "lower bound (98.75 %)"],
      distances.map(({ name, natsPerAnswer, atMost, atLeast }) => [
        name,
        figure(natsPerAnswer.value),
        intervalText(natsPerAnswer, figure),
        atMost === undefined ? "-" : figure(atMost),
        atLeast === undefined ? "-" : figure(atLeast),
      ]),
    ) +
    (exactness.length === 0
      ? ""
      : table(
          "Written exactly by greedy decoding; conversations that lost or gained some, and the exact sign test",
          ["", "answers", "baseline", "variant", "lost in", "gained in", "p", "p (Holm)"],
          exactness.map((row) => [
            row.name,
            String(row.answers),
            String(row.baselineExact),
            String(row.variantExact),
            String(row.conversationsLost),
            String(row.conversationsGained),
            row.p.toPrecision(2),
            row.adjustedP.toPrecision(2),
          ]),
        ))
  );
}

function table(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const header = head.map((cell) => (cell === "" ? "<td></td>" : `<th scope="col">${escapeHtml(cell)}</th>`));
  const body = rows.map(
    ([first = "", ...rest]) =>
      `<tr><th scope="row">${escapeHtml(first)}</th>${rest.map(numberCell).join("")}</tr>`,
  );
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(caption)}"><table><caption>${escapeHtml(caption)}</caption>` +
    `<thead><tr>${header.join("")}</tr></thead><tbody>${body.join("")}</tbody></table></div>`
  );
}

/** A figure, with its interval on a line of its own. */
function numberCell(text: string): string {
  const at = text.indexOf(" [");
  if (at === -1) return `<td class="number">${escapeHtml(text.trim())}</td>`;
  return `<td class="number">${escapeHtml(text.slice(0, at))}<small>${escapeHtml(text.slice(at + 1))}</small></td>`;
}

/** White space that would not be seen. */
function visible(text: string): string {
  return text.replaceAll("\n", "\u21b5").replaceAll("\t", "\u21e5");
}
