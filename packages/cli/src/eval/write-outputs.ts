import { writeFile } from "node:fs/promises";
import { type EvalReport, renderJunit, renderMarkdown, renderReportHtml } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import type { OutputFlags } from "./eval-flags.js";
import { renderEvalTable } from "./eval-table.js";

/** Writes what the flags ask for; what was measured for minutes is printed before anything can fail. */
export async function writeOutputs(
  report: EvalReport,
  { html, json, junit, markdown }: OutputFlags,
  questions: Readonly<Record<string, string>>,
): Promise<void> {
  const files = [
    ["json", json, (): string => `${JSON.stringify(report, null, 2)}\n`],
    ["markdown", markdown, (): string => renderMarkdown(report)],
    ["junit", junit, (): string => renderJunit(report)],
    ["html", html, (): string => renderReportHtml(report, { questions })],
  ] as const;
  const isPiped = files.some(([, path]) => path === "-");
  if (!isPiped) process.stdout.write(renderEvalTable(report));
  for (const [flag, path, render] of files) {
    if (path === undefined) continue;
    if (path === "-") process.stdout.write(render());
    else await write(flag, path, render());
  }
}

async function write(flag: string, path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new OctavoError("invalid_option", `--${flag}: ${path} cannot be written (${code})`, {
      param: flag,
      cause,
    });
  }
}
