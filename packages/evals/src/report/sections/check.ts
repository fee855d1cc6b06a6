import {
  clip,
  drawChart,
  escapeHtml,
  formatInterval,
  formatP,
  formatValue,
  intervalChart,
  shorten,
  significant,
  table,
  ratingBadge,
} from "@octavo/report";
import type {
  Advice,
  CheckResult,
  Hypothesis,
  MovedCase,
  RuleOfThumb,
  SampleSize,
} from "../../checks/check.js";
import { diffHtml } from "../word-diff.js";

const mostHypotheses = 100;
const mostMoved = 50;
const mostCharacters = 2000;

/** One check: its question, what decided, what it looks like, what to do, and whom it moved. */
export function checkSection(result: CheckResult, question: string | undefined): string {
  const id = `check-${result.check}`;
  return (
    `<section class="check" id="${escapeHtml(id)}" aria-labelledby="${escapeHtml(id)}-title"><div class="heading"><h3 id="${escapeHtml(id)}-title">${escapeHtml(result.check)}</h3>${ratingBadge(result.verdict)}</div>` +
    (question === undefined ? "" : `<p class="question">${escapeHtml(question)}</p>`) +
    `<p class="summary">${escapeHtml(result.summary)}</p>${adviceList(result.advice)}` +
    `<div class="charts">${hypothesisCharts(result.hypotheses)}${result.figures.map(drawChart).join("")}</div>` +
    `${hypothesisTable(result.hypotheses)}${sampleSize(result.sampleSize)}${ruleOfThumb(result.ruleOfThumb)}${movedCases(result.movedCases)}${notes(result.notes)}</section>`
  );
}

/** One chart for each unit: figures of different units share no axis. */
function hypothesisCharts(hypotheses: readonly Hypothesis[]): string {
  const units = new Set(hypotheses.map(({ unit }) => unit));
  return [...units]
    .map((unit) => {
      const rows = hypotheses.flatMap((hypothesis) =>
        hypothesis.unit !== unit || hypothesis.estimate === undefined || hypothesis.interval === undefined
          ? []
          : [
              {
                label: hypothesis.name,
                estimate: hypothesis.estimate,
                interval: hypothesis.interval,
                margin: hypothesis.margin,
                verdict: hypothesis.verdict,
              },
            ],
      );
      return rows.length === 0 ? "" : intervalChart({ title: "What decides", unit, rows });
    })
    .join("");
}

function hypothesisTable(hypotheses: readonly Hypothesis[]): string {
  if (hypotheses.length === 0) return "";
  return table(
    "Hypotheses; p values are adjusted for how many there are",
    ["hypothesis", "verdict", "estimate", "interval", "confidence", "margin", "p", "method"],
    hypotheses
      .slice(0, mostHypotheses)
      .map((row) => [
        row.name,
        { html: ratingBadge(row.verdict) },
        formatValue(row.estimate, row.unit),
        formatInterval(row.interval, row.unit),
        formatValue(row.confidence, "share"),
        formatValue(row.margin, row.unit),
        formatP(row.pValue),
        row.method,
      ]),
    [2, 3, 4, 5, 6],
  );
}

function sampleSize({ have, needed, alpha, power, basis }: SampleSize): string {
  const enough = needed === undefined || have >= needed;
  const count =
    needed === undefined
      ? `${significant(have, 0)} observations`
      : `${significant(have, 0)} of ${significant(needed, 0)} observations that a verdict needs`;
  const meter =
    needed === undefined || needed <= 0
      ? ""
      : `<meter min="0" max="1" value="${Math.min(1, have / needed).toFixed(3)}" aria-label="observations of those needed"></meter>`;
  return `<p class="sample${enough ? "" : " short"}">${meter}<b>${escapeHtml(count)}</b> <small>\u03b1 ${alpha}, power ${power}; ${escapeHtml(basis)}</small></p>`;
}

/** Beside the verdict, and never part of it. */
function ruleOfThumb({ rule, tripped, columns, rows }: RuleOfThumb): string {
  const cells = rows.map((row) =>
    row.map((cell) => (cell === null ? "\u2013" : typeof cell === "number" ? plain(cell) : cell)),
  );
  const numeric = columns.flatMap((_, index) =>
    rows.some((row) => typeof row[index] === "number") ? [index] : [],
  );
  return (
    `<aside class="thumb" aria-label="Published rule of thumb"><p><b>Rule of thumb</b> <span class="badge plain">${tripped ? "tripped" : "not tripped"}</span> <small>as published; shown, never decisive</small></p>` +
    `<p>${escapeHtml(rule)}</p>${rows.length === 0 ? "" : table("As the rule counts", columns, cells, numeric)}</aside>`
  );
}

function plain(value: number): string {
  return Number.isInteger(value) ? significant(value, 0) : String(Number(value.toPrecision(4)));
}

function adviceList(advice: readonly Advice[]): string {
  if (advice.length === 0) return "";
  const items = advice.map(
    ({ knob, change, because }) =>
      `<li><code>${escapeHtml(knob)}</code> ${escapeHtml(change)} <small>${escapeHtml(because)}</small></li>`,
  );
  return `<div class="advice"><h4>What to change</h4><ol>${items.join("")}</ol></div>`;
}

function movedCases(cases: readonly MovedCase[]): string {
  if (cases.length === 0) return "";
  const items = cases.slice(0, mostMoved).map(({ caseId, what, before, after }) => {
    const text =
      before !== undefined && after !== undefined
        ? `<p class="answer">${diffHtml(before, after, mostCharacters)}</p>`
        : `<p class="answer">${escapeHtml(clip(after ?? before ?? "", mostCharacters))}</p>`;
    return `<li><p><code>${escapeHtml(shorten(caseId, 120))}</code> ${escapeHtml(what)}</p>${before === undefined && after === undefined ? "" : text}</li>`;
  });
  return `<details class="moved"${cases.length <= 3 ? " open" : ""}><summary>${cases.length === 1 ? "1 case" : `${cases.length} cases`} that moved, worst first</summary><ol>${items.join("")}</ol></details>`;
}

function notes(lines: readonly string[]): string {
  return lines.length === 0
    ? ""
    : `<ul class="notes">${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join("")}</ul>`;
}
