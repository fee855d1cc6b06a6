import { escapeHtml, formatDuration, significant, ratingBadge } from "@octavo/report";
import { type EvalReport, verdictOf } from "../report.js";

const headlines = {
  pass: "Ready to ship",
  fail: "Do not ship",
  inconclusive: "Not decided",
} as const;

/** The verdict, what it is about, and the figures of the run. */
export function header(report: EvalReport): string {
  const verdict = verdictOf(report);
  const headline =
    report.gate?.outcome === "skipped" ? "Nothing to check" : headlines[verdict ?? "inconclusive"];
  return (
    `<header class="top ${verdict ?? "inconclusive"}"><p class="kicker">octavo eval</p>` +
    `<h1>${escapeHtml(verdict === undefined ? "Measured" : headline)}</h1><p class="name">${escapeHtml(report.name)}</p>` +
    `<p class="why">${escapeHtml(reason(report))}</p>${facts(report)}</header>`
  );
}

function reason(report: EvalReport): string {
  if (report.gate !== undefined) return report.gate.summary;
  const failed = report.checks.filter(({ verdict }) => verdict === "fail").map(({ check }) => check);
  const open = report.checks.filter(({ verdict }) => verdict === "inconclusive").map(({ check }) => check);
  const passed = report.checks.length - failed.length - open.length;
  if (report.checks.length === 0) return "Answers were scored; nothing was asserted of them.";
  return [
    ...(failed.length > 0 ? [`Failed: ${failed.join(", ")}.`] : []),
    ...(open.length > 0 ? [`Not decided with this many cases: ${open.join(", ")}.`] : []),
    `${passed} of ${report.checks.length} checks passed.`,
  ].join(" ");
}

function facts(report: EvalReport): string {
  const targets = report.targets.map(
    ({ name, url, model }) =>
      `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(model ?? "")} <small>${escapeHtml(url)}</small></dd></div>`,
  );
  const rows: readonly (readonly [string, string])[] = [
    ["cases", significant(report.numCases, 0)],
    ["data", report.datasets.map(({ name }) => name).join(", ")],
    ["prompts", report.datasets.flatMap(({ prompts = [] }) => prompts).join("; ")],
    ["begun", report.startedAt.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC")],
    ["took", formatDuration(report.durationMs)],
    ["seed", String(report.seed)],
  ];
  const rest = rows
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `<div><dt>${name}</dt><dd>${escapeHtml(value)}</dd></div>`);
  return `<dl class="facts">${targets.join("")}${rest.join("")}</dl>`;
}

/** One card a check: what it asks, and its verdict. */
export function overview({ checks }: EvalReport): string {
  const cards = checks.map(
    ({ check, verdict, summary }) =>
      `<li class="card ${verdict}"><a href="#check-${escapeHtml(check)}"><b>${escapeHtml(check)}</b>${ratingBadge(verdict)}<span>${escapeHtml(summary)}</span></a></li>`,
  );
  return cards.length === 0 ? "" : `<ul class="cards">${cards.join("")}</ul>`;
}
