import { escapeHtml } from "@octavo/report";
import { formatValue, significant } from "@octavo/report";
import type { EvalReport } from "../report/report.js";

type TestCase = {
  readonly suite: string;
  readonly name: string;
  readonly verdict: "pass" | "fail" | "inconclusive";
  readonly isWarning: boolean;
  readonly message: string;
  readonly details: string;
};

/**
 * JUnit's XML as continuous integration reads it: a test case for every expectation and check. A failure is a `failure`; what
 * is not decided is an `error`, since a reader that knows only two outcomes must not take it for a success; warnings are
 * `skipped`, with their message.
 */
export function renderJunit(report: EvalReport): string {
  const cases = [...gateCases(report), ...checkCases(report)];
  const suites = [...new Set(cases.map(({ suite }) => suite))].map((suite) => {
    const own = cases.filter((testCase) => testCase.suite === suite);
    const body = own.map(caseXml).join("");
    return `  <testsuite name="${escapeXml(suite)}" ${counts(own)} timestamp="${escapeXml(report.startedAt.replace(/(\.\d+)?Z$/, ""))}">\n${body}  </testsuite>\n`;
  });
  return (
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
    `<testsuites name="${escapeXml(report.name)}" ${counts(cases)} time="${(report.durationMs / 1000).toFixed(3)}">\n${suites.join("")}</testsuites>\n`
  );
}

function gateCases({ gate }: EvalReport): readonly TestCase[] {
  if (gate === undefined) return [];
  const broken = !["pass", "fail", "inconclusive", "skipped"].includes(gate.outcome);
  return [
    ...gate.items
      .filter(({ dimension }) => dimension !== "check")
      .map((item) => ({
        suite: `health.${item.dimension}`,
        name: item.expectation,
        verdict: item.verdict,
        isWarning: item.onFail === "warn",
        message: item.summary,
        details: `bound ${formatValue(item.bound, item.unit)}, by ${item.method}`,
      })),
    ...(broken
      ? [
          {
            suite: "run",
            name: gate.outcome,
            verdict: "inconclusive" as const,
            isWarning: false,
            message: gate.summary,
            details: `exit code ${gate.exitCode}`,
          },
        ]
      : []),
  ];
}

function checkCases({ checks, gate }: EvalReport): readonly TestCase[] {
  return checks.map((result) => ({
    suite: "checks",
    name: result.check,
    verdict: result.verdict,
    isWarning:
      gate?.items.some((item) => item.expectation === result.check && item.onFail === "warn") ?? false,
    message: result.summary,
    details: [
      ...result.advice.map(({ knob, change }) => `${knob}: ${change}`),
      ...result.movedCases.slice(0, 10).map(({ caseId, what }) => `${caseId}: ${what}`),
      ...(result.sampleSize.needed === undefined
        ? []
        : [`${significant(result.sampleSize.have, 0)} of ${significant(result.sampleSize.needed, 0)} cases`]),
    ].join("\n"),
  }));
}

function caseXml({ suite, name, verdict, isWarning, message, details }: TestCase): string {
  const open = `    <testcase classname="${escapeXml(suite)}" name="${escapeXml(name)}"`;
  if (verdict === "pass") return `${open}/>\n`;
  const tag = isWarning ? "skipped" : verdict === "fail" ? "failure" : "error";
  const type = isWarning || tag === "skipped" ? "" : ` type="${verdict}"`;
  return `${open}>\n      <${tag} message="${escapeXml(message)}"${type}>${tag === "skipped" ? "" : escapeXml(details)}</${tag}>\n    </testcase>\n`;
}

function counts(cases: readonly TestCase[]): string {
  const count = (verdict: TestCase["verdict"]): number =>
    cases.filter((testCase) => testCase.verdict === verdict && !testCase.isWarning).length;
  const skipped = cases.filter(({ verdict, isWarning }) => isWarning && verdict !== "pass").length;
  return `tests="${cases.length}" failures="${count("fail")}" errors="${count("inconclusive")}" skipped="${skipped}"`;
}

/** Line ends as entities, as attributes keep only those. */
function escapeXml(text: string): string {
  return escapeHtml(text).replaceAll("\n", "&#10;").replaceAll("\r", "&#13;");
}
