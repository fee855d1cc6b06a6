import type { ModelComparison } from "../../compare.js";
import { activationRows, figure, fixed, gibibytes, intervalText, percent } from "../format.js";
import type { Cell, ScoreEstimate, Summary } from "../summary.js";
import {
  escapeHtml,
  histogram,
  intervalChart,
  renderPage,
  section,
  table,
  type TableCell,
} from "@octavo/report";

const styles =
  ".text{display:block;font:.8rem/1.5 ui-monospace,monospace;min-width:18rem;white-space:pre-wrap}" +
  "td code{white-space:pre-wrap}mark{background:light-dark(#ffe9a8,#5c4a12);color:inherit}";

const ratings = {
  identical: "pass",
  "near-lossless": "pass",
  drift: "fail",
  inconclusive: "inconclusive",
} as const;

/**
 * A comparison as one HTML file: no script, nothing loaded from elsewhere. Charts are inline SVG whose rows take the
 * keyboard's focus and carry their figures as labels; the same figures stand in a table below each.
 */
export function renderHtml(comparison: ModelComparison): string {
  const { baseline, variant, data, method, verdict, summary } = comparison;
  const roleCells = [summary.overall, ...summary.byRole];
  return renderPage({
    title: `${verdict.verdict}: ${variant.model} against ${baseline.model}`,
    skip: "Skip to the figures",
    styles,
    body: [
      `<header class="top ${ratings[verdict.verdict]}"><p class="kicker">octavo compare</p><h1>${escapeHtml(verdict.verdict)}</h1>`,
      `<p><b>${escapeHtml(variant.model)}</b> against <b>${escapeHtml(baseline.model)}</b></p>`,
      `<ul>${verdict.reasons.map((reason) => `<li>${escapeHtml(reason)}</li>`).join("")}</ul></header>`,
      '<main id="main">',
      section("models", "What was compared", models(comparison)),
      section(
        "roles",
        "By role",
        klChart("Mean KL divergence by role, nats per token", roleCells) +
          intervalChart({
            title: "Top-1 flips by role, share of tokens",
            unit: "share",
            rows: roleCells.map(({ name, flips }) => intervalRow(name, flips)),
            show: percent,
          }) +
          cellTable("role", roleCells),
      ),
      section(
        "positions",
        "By position in the answer",
        klChart(
          "Mean KL divergence by position in the answer, nats per token",
          summary.byPosition.map((cell) => ({ ...cell, name: `tokens ${cell.name}` })),
        ) + cellTable("tokens of the answer", summary.byPosition),
      ),
      section("tokens", "Single tokens", klHistogram(summary) + worstTable(comparison)),
      section("evidence", "Evidence", evidence(comparison)),
      "</main>",
      `<footer><p>${escapeHtml(
        `${data.path}: ${data.conversations} conversations, ${data.answers} answers, ${data.tokens} of ${data.computedTokens} computed tokens scored. ` +
          `${method.direction}. Intervals hold 95 % of ${method.resamples} resamples of whole conversations (BCa, seed ${method.seed}). ${method.kernels}.`,
      )}</p></footer>`,
    ],
  });
}

function intervalRow(label: string, { value, interval }: ScoreEstimate) {
  return { label, estimate: value, interval };
}

function klChart(title: string, cells: readonly Cell[]): string {
  const rows = cells.map(({ name, kl }) => intervalRow(name, kl));
  return intervalChart({ title, unit: "nats", rows, scale: "log", show: figure });
}

function klHistogram({ klHistogram: bins }: Summary): string {
  const power = (value: number) => value.toExponential(0);
  return histogram({
    title: "Tokens by the size of their divergence",
    xLabel: "KL of a token, nats",
    counted: "tokens",
    bars: bins.map(({ from, to, tokens: count }) => {
      if (to === undefined) return { label: `${from} nats and more`, tick: `\u2265 ${power(from)}`, count };
      return from === 0
        ? { label: `under ${power(to)} nats`, tick: `< ${power(to)}`, count }
        : { label: `${power(from)} to ${power(to)} nats`, tick: power(from), count };
    }),
  });
}

function models({ baseline, variant, summary }: ModelComparison): string {
  const { overall } = summary;
  const perplexity = (estimate: ScoreEstimate): TableCell =>
    figureCell(`${fixed(estimate.value)} ${intervalText(estimate, fixed)}`);
  return table(
    "The two artifacts",
    ["", "baseline", "variant"],
    [
      ["model", baseline.model, variant.model],
      ["architecture", baseline.architecture, variant.architecture],
      ["weights in memory", gibibytes(baseline.weightBytes), gibibytes(variant.weightBytes)],
      ["KV cache", baseline.kvCacheDtype, variant.kvCacheDtype],
      ...activationRows(baseline, variant),
      ["perplexity", perplexity(overall.baselinePerplexity), perplexity(overall.variantPerplexity)],
    ],
  );
}

function cellTable(first: string, cells: readonly Cell[]): string {
  return figureTable(
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

function worstTable({ worst }: ModelComparison): string {
  if (worst.length === 0) return "<p>No token has any divergence.</p>";
  const choice = ({ token, probability }: (typeof worst)[number]["baseline"]): TableCell => ({
    html: `<code>${escapeHtml(visible(token))}</code> ${escapeHtml(percent(probability))}`,
  });
  return table(
    "Where the models differ most: the data's token is marked",
    ["KL", "role", "line", "text", "baseline's choice", "variant's choice"],
    worst.map((token) => [
      figure(token.kl),
      token.role,
      String(token.line),
      {
        html: `<span class="text">${escapeHtml(visible(token.context))}<mark>${escapeHtml(visible(token.target))}</mark></span>`,
      },
      choice(token.baseline),
      choice(token.variant),
    ]),
    [2],
  );
}

function evidence({ verdict }: ModelComparison): string {
  const { distances, exactness, noticeableNats, tokensPerAnswer } = verdict;
  return (
    `<p>An observer is shown one answer and must say which model wrote it. With a divergence of up to ${escapeHtml(figure(noticeableNats))} nats in the answer ` +
    `even one who knows both models' probabilities is right at most 3 times in 4, the usual threshold of a noticeable difference (Pinsker's inequality). An answer of this data has ${tokensPerAnswer.toFixed(1)} tokens on average. ` +
    "Near-lossless: the upper bounds lie below that, and no exact answers were lost beyond chance. Drift: a lower bound lies above it, or answers were lost. " +
    "Either is wrong at most 5 % of the time by the luck of the data.</p>" +
    figureTable(
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
      : figureTable(
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

/** Every column after the first holds figures. */
function figureTable(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = rows.map(([name = "", ...rest]) => [name, ...rest.map(figureCell)]);
  return table(caption, head, cells, [...head.keys()].slice(1));
}

/** A figure, with its interval on a line of its own. */
function figureCell(text: string): TableCell {
  const at = text.indexOf(" [");
  if (at === -1) return text.trim();
  return { html: `${escapeHtml(text.slice(0, at))}<small>${escapeHtml(text.slice(at + 1))}</small>` };
}

/** White space that would not be seen. */
function visible(text: string): string {
  return text.replaceAll("\n", "\u21b5").replaceAll("\t", "\u21e5");
}
