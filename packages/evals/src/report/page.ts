import { escapeHtml, ratingBadge, renderPage, section } from "@octavo/report";
import { type EvalReport, verdictOf } from "./report.js";
import { script } from "./script.js";
import { caseSection } from "./sections/cases.js";
import { checkSection } from "./sections/check.js";
import { evaluatorSection, judgeSection } from "./sections/evaluators.js";
import { gateSection } from "./sections/gate.js";
import { header, overview } from "./sections/header.js";
import { reportStyles } from "./styles.js";

/** How an HTML report is laid out. */
export interface PageOptions {
  /** What each check asks, to stand above its result. */
  readonly questions?: Readonly<Record<string, string>>;
  /** For the list of cases, in bytes of HTML. Default 16 MiB. */
  readonly maxCaseBytes?: number;
}

/** A report as one HTML file that loads nothing. Its script filters cases and switches the theme. */
export function renderReportHtml(report: EvalReport, options: PageOptions = {}): string {
  const { questions = {}, maxCaseBytes = 16 * 2 ** 20 } = options;
  const checks = report.checks.map((result) => checkSection(result, questions[result.check]));
  return renderPage({
    title: `${verdictOf(report) ?? "measured"}: ${report.name}`,
    skip: "Skip to the verdicts",
    styles: reportStyles,
    script,
    body: [
      header(report),
      contents(report),
      '<main id="main">',
      warnings(report.warnings),
      overview(report),
      report.gate === undefined ? "" : section("gate", "Release gate", gateSection(report.gate)),
      section("evaluators", "Quality", evaluatorSection(report.evaluators)),
      section("judges", "Can the judge be believed?", judgeSection(report)),
      section("checks", "Serving checks", checks.join("")),
      section("cases", "Cases", caseSection(report.cases, report.numCases, maxCaseBytes)),
      "</main>",
      "<footer><p>Verdicts: <b>pass</b> when the interval shows that the effect is within the margin, <b>fail</b> when it shows that it is beyond it, <b>inconclusive</b> otherwise. Margins were fixed before the run.</p></footer>",
    ],
  });
}

/** Links to the sections, those to checks with their verdicts. */
function contents(report: EvalReport): string {
  const places: readonly (readonly [string, string, boolean])[] = [
    ["gate", "Release gate", report.gate !== undefined],
    ["evaluators", "Quality", report.evaluators.length > 0],
    ["judges", "Judges", judgeSection(report) !== ""],
    ["checks", "Serving checks", report.checks.length > 0],
    ["cases", "Cases", report.cases.length > 0],
  ];
  const links = places
    .filter(([, , isThere]) => isThere)
    .map(([id, name]) => `<li><a href="#${id}">${name}</a>${id === "checks" ? checkLinks(report) : ""}</li>`);
  return `<nav aria-label="Contents"><ul>${links.join("")}</ul><button type="button" class="theme" hidden>Dark or light</button></nav>`;
}

function checkLinks({ checks }: EvalReport): string {
  const links = checks.map(
    ({ check, verdict }) =>
      `<li><a href="#check-${escapeHtml(check)}">${escapeHtml(check)}</a> ${ratingBadge(verdict)}</li>`,
  );
  return `<ul>${links.join("")}</ul>`;
}

function warnings(lines: readonly string[]): string {
  return lines.length === 0
    ? ""
    : `<ul class="warnings" aria-label="Warnings">${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join("")}</ul>`;
}
