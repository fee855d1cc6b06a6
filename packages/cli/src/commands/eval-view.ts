import { readFile } from "node:fs/promises";
import type { EvalReport } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Command } from "commander";
import { evalAction } from "../eval/eval-action.js";
import { outputFlags, type OutputFlags } from "../eval/eval-flags.js";
import { questions } from "../eval/run-plan.js";
import { writeOutputs } from "../eval/write-outputs.js";

/** `octavo eval view REPORT`: a report that was written with --json, as a table, a page or a comment. */
export function evalViewCommand(): Command {
  const command = new Command("view")
    .description("show a report that an earlier run wrote with --json")
    .argument("<report>", "the JSON file");
  return outputFlags(command).action(
    evalAction(async (path: string, flags: OutputFlags) => {
      const report = await readReport(path);
      try {
        await writeOutputs(report, flags, questions());
      } catch (cause) {
        // what has the mark of a report and not its fields was cut or edited
        if (!(cause instanceof TypeError)) throw cause;
        throw new OctavoError("dataset_invalid", `${path} is not a whole report: ${cause.message}`, {
          cause,
        });
      }
    }),
  );
}

async function readReport(path: string): Promise<EvalReport> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new OctavoError(
      "dataset_invalid",
      `${path} cannot be read as JSON: ${OctavoError.from(cause).message}`,
      { cause },
    );
  }
  if (typeof value === "object" && value !== null && "format" in value && value.format === "octavo.eval/1")
    return value as EvalReport;
  throw new OctavoError("dataset_invalid", `${path} is not a report of octavo eval (--json)`);
}
