import { visibleText } from "@octavo/report";
import type { Verdict } from "../checks/check.js";
import { formatDuration, formatInterval, formatValue, significant } from "@octavo/report";
import { type EvalReport, verdictOf } from "../report/report.js";

const signs: Readonly<Record<Verdict, string>> = {
  pass: "\u2705 pass",
  fail: "\u274c fail",
  inconclusive: "\u2754 inconclusive",
};

const mostCharacters = 60_000;

/** A comment for a pull request: the verdict first, figures in tables, long parts folded. GitHub takes 65,536 characters. */
export function renderMarkdown(report: EvalReport): string {
  const verdict = verdictOf(report);
  const title =
    report.gate?.outcome === "skipped" ? "skipped" : verdict === undefined ? "measured" : signs[verdict];
  const parts = [
    `### ${title}: ${text(report.name)}`,
    "",
    ...(report.gate === undefined ? [] : [text(report.gate.summary), ""]),
    ...report.warnings.map((line) => `> \u26a0\ufe0f ${text(line)}\n`),
    ...healthTable(report),
    ...checkTable(report),
    ...adviceList(report),
    ...evaluatorTable(report),
    `<sub>${significant(report.numCases, 0)} cases, ${formatDuration(report.durationMs)}, seed ${report.seed}. Pass: the interval shows the effect within the margin. Fail: it shows it beyond. Margins were fixed before the run.</sub>`,
    "",
  ];
  const whole = parts.join("\n");
  return whole.length <= mostCharacters
    ? whole
    : `${whole.slice(0, mostCharacters)}\n\n_The rest is in the HTML report._\n`;
}

function healthTable({ gate }: EvalReport): readonly string[] {
  const items = gate?.items.filter(({ dimension }) => dimension !== "check") ?? [];
  if (items.length === 0) return [];
  return [
    "| expected | | measured | interval | n |",
    "| --- | --- | ---: | --- | ---: |",
    ...items.map(
      (item) =>
        `| ${code(item.expectation)} | ${signs[item.verdict]}${item.onFail === "warn" ? " (warns)" : ""} | ${formatValue(item.estimate, item.unit)} | ${formatInterval(item.interval, item.unit)} | ${item.numObservations} |`,
    ),
    "",
  ];
}

function checkTable({ checks }: EvalReport): readonly string[] {
  if (checks.length === 0) return [];
  return [
    "| check | | |",
    "| --- | --- | --- |",
    ...checks.map(
      ({ check, verdict, summary }) => `| ${text(check)} | ${signs[verdict]} | ${text(summary)} |`,
    ),
    "",
  ];
}

function adviceList({ checks }: EvalReport): readonly string[] {
  const lines = checks
    .filter(({ verdict }) => verdict !== "pass")
    .flatMap(({ check, advice }) =>
      advice.map(
        ({ knob, change, because }) =>
          `- **${text(check)}** ${code(knob)}: ${text(change)} (${text(because)})`,
      ),
    );
  return lines.length === 0
    ? []
    : [`<details><summary>What to change (${lines.length})</summary>`, "", ...lines, "", "</details>", ""];
}

function evaluatorTable({ evaluators }: EvalReport): readonly string[] {
  if (evaluators.length === 0) return [];
  return [
    "<details><summary>Scores</summary>",
    "",
    "| evaluator | target | pass rate | interval | scored | could not tell |",
    "| --- | --- | ---: | --- | ---: | ---: |",
    ...evaluators.map(
      (row) =>
        `| ${text(row.evaluator)} | ${text(row.target)} | ${formatValue(row.passRate?.estimate, "share")} | ${formatInterval(row.passRate?.interval, "share")} | ${row.scored} | ${row.failed} |`,
    ),
    "",
    "</details>",
    "",
  ];
}

/** Text that models and datasets wrote neither mentions people, nor links, nor breaks a table. */
function text(value: string): string {
  return oneLine(value.slice(0, 2000))
    .replaceAll(/[\\`*_{}[\]<>#|!~]/g, (sign) => `\\${sign}`)
    .replaceAll(/@|:(?=\/\/)|www(?=\.)/gi, (sign) => `${sign}\u200b`);
}

function code(value: string): string {
  const clean = oneLine(value).replaceAll("`", "'").replaceAll("|", "\\|");
  return `\`${clean.slice(0, 400)}\``;
}

function oneLine(value: string): string {
  return visibleText(value.replaceAll(/\p{Cs}|\p{Cc}/gu, " "));
}
