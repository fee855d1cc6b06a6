import { readFile } from "node:fs/promises";
import type { EvalReport } from "@octavo/evals";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { defineCommand } from "../command.js";
import { outputRows } from "../eval/eval-rows.js";
import { writeOutputs } from "../eval/write-outputs.js";

/** `octavo eval view REPORT`: shows a report written with --json as a table, a page or a comment. */
export default defineCommand({
  arguments: { "<report>": "the JSON file" },
  options: outputRows,
  async run(flags, path: string) {
    const report = await readReport(path);
    try {
      await writeOutputs(report, flags);
    } catch (cause) {
      // The file is marked as a report but lacks fields: it was truncated or edited.
      if (!(cause instanceof TypeError)) throw cause;
      throw new OctavoError("dataset_invalid", `${path} is not a whole report: ${cause.message}`, { cause });
    }
  },
});

async function readReport(path: string): Promise<EvalReport> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new OctavoError("dataset_invalid", `${path} cannot be read as JSON: ${systemProblem(cause)}`, {
      cause,
    });
  }
  if (typeof value === "object" && value !== null && "format" in value && value.format === "octavo.eval/1")
    return value as EvalReport;
  throw new OctavoError("dataset_invalid", `${path} is not a report that octavo eval --json wrote`);
}
