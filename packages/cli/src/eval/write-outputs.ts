import { checkTable, type EvalReport, renderJunit, renderMarkdown, renderReportHtml } from "@octavo/evals";
import { writeTextOf } from "../output/files.js";
import type { OutputFlags } from "./eval-rows.js";
import { renderEvalTable } from "./eval-table.js";

/** Writes what the flags ask for. The table is printed first: no failure to write loses what took minutes to measure. */
export async function writeOutputs(
  report: EvalReport,
  { html, json, junit, markdown }: OutputFlags,
): Promise<void> {
  const questions = Object.fromEntries(checkTable.map(({ name, question }) => [name, question]));
  const files = [
    ["json", json, (): string => `${JSON.stringify(report, null, 2)}\n`],
    ["markdown", markdown, (): string => renderMarkdown(report)],
    ["junit", junit, (): string => renderJunit(report)],
    ["html", html, (): string => renderReportHtml(report, { questions })],
  ] as const;
  if (!files.some(([, path]) => path === "-")) process.stdout.write(renderEvalTable(report));
  for (const [flag, path, render] of files) if (path !== undefined) await writeTextOf(flag, path, render());
}
