import type { EvalReport, Verdict } from "@octavo/evals";
import { printable, textTable } from "@octavo/report/text-table";

const signs: Readonly<Record<Verdict, string>> = { pass: "pass", fail: "FAIL", inconclusive: "open" };

/** The results as text for a terminal. */
export function renderEvalTable(report: EvalReport): string {
  const parts: string[] = [];
  if (report.evaluators.length > 0)
    parts.push(
      textTable(report.evaluators, [
        { head: "evaluator", of: (row) => row.evaluator },
        { head: "target", of: (row) => row.target },
        { head: "pass rate", of: (row) => share(row.passRate?.estimate) },
        { head: "95 % interval", of: (row) => range(row.passRate?.interval) },
        { head: "scored", of: (row) => row.scored },
        { head: "skipped", of: (row) => row.skipped },
        { head: "could not tell", of: (row) => row.failed },
      ]),
    );
  const prompts = report.datasets.flatMap(({ prompts: asked = [] }) => asked);
  if (prompts.length > 0) parts.push(`asked with: ${printable(prompts.join("; "))}`);
  if (report.cascades !== undefined)
    parts.push(
      textTable(report.cascades, [
        { head: "cascade", of: (row) => row.evaluator },
        { head: "target", of: (row) => row.target },
        {
          head: "decided by",
          of: ({ stages }) => stages.map(({ name, numDecided }) => `${name} ${numDecided}`).join(", "),
        },
        { head: "audited", of: (row) => row.numAudited },
        { head: "agreement", of: (row) => share(row.agreement?.estimate) },
        { head: "95 % interval", of: (row) => range(row.agreement?.interval) },
      ]),
    );
  if (report.comparisons !== undefined)
    parts.push(
      textTable(report.comparisons, [
        { head: "comparison", of: (row) => row.evaluator },
        { head: "target", of: (row) => row.target },
        { head: "pairs", of: (row) => row.numPairs },
        { head: "orders disagree", of: (row) => share(row.disagreement?.estimate) },
        { head: "95 % interval", of: (row) => range(row.disagreement?.interval) },
        { head: "of these for the first", of: (row) => share(row.firstPreferred?.estimate) },
      ]),
    );
  if (report.checks.length > 0)
    parts.push(
      textTable(report.checks, [
        { head: "check", of: (row) => row.check },
        { head: "verdict", of: (row) => signs[row.verdict] },
        { head: "why", of: (row) => row.summary },
      ]),
    );
  const items = report.gate?.items.filter(({ dimension }) => dimension !== "check") ?? [];
  if (items.length > 0)
    parts.push(
      textTable(items, [
        { head: "expected", of: (row) => row.expectation },
        { head: "verdict", of: (row) => `${signs[row.verdict]}${row.onFail === "warn" ? " (warns)" : ""}` },
        { head: "measured", of: (row) => row.summary },
      ]),
    );
  const advice = report.checks
    .filter(({ verdict }) => verdict !== "pass")
    .flatMap(({ check, advice: all }) =>
      all.slice(0, 2).map(({ knob, change }) => `${check}: ${printable(knob)} ${printable(change)}\n`),
    );
  if (advice.length > 0) parts.push(advice.join(""));
  if (report.warnings.length > 0)
    parts.push(report.warnings.map((warning) => `warning: ${printable(warning)}\n`).join(""));
  if (report.gate !== undefined) parts.push(`${report.gate.outcome}: ${printable(report.gate.summary)}\n`);
  return parts.join("\n");
}

function share(value: number | undefined): string | undefined {
  return value === undefined ? undefined : `${(100 * value).toFixed(1)} %`;
}

function range(interval: readonly [number, number] | undefined): string | undefined {
  return interval && `${(100 * interval[0]).toFixed(1)} to ${(100 * interval[1]).toFixed(1)} %`;
}
