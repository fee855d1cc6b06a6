import { checkTable, datasetFormats, evaluatorTable, exitCodes } from "@octavo/evals";
import { Argument, Command } from "commander";
import { evalAction } from "../eval/eval-action.js";
import { textTable } from "../output/text-table.js";

const subjects = ["evaluators", "checks", "datasets", "exit-codes"] as const;
type Subject = (typeof subjects)[number];

/** `octavo eval list`: what there is. */
export function evalListCommand(): Command {
  return new Command("list")
    .description("list evaluators, checks, dataset formats or exit codes")
    .addArgument(new Argument("[what]", "what to list").choices(subjects).default("evaluators"))
    .option("--json", "print JSON instead of a table")
    .action(evalAction((what: Subject, { json }: { readonly json?: boolean }) => list(what, json === true)));
}

async function list(what: Subject, isJson: boolean): Promise<void> {
  const rows = rowsOf(what);
  const [first] = rows;
  process.stdout.write(
    isJson
      ? `${JSON.stringify(rows, null, 2)}\n`
      : textTable(
          rows,
          Object.keys(first ?? {}).map((head) => ({ head, of: (row) => row[head] })),
        ),
  );
  return Promise.resolve();
}

function rowsOf(what: Subject): readonly Readonly<Record<string, string | number>>[] {
  switch (what) {
    case "evaluators":
      return evaluatorTable.entries.map(({ name, output, needsJudge, inputs, description }) => ({
        name,
        output,
        judge: needsJudge ? "yes" : "",
        reads: inputs.join(", "),
        description,
      }));
    case "checks":
      return checkTable.map(({ name, needs, question }) => ({ name, needs: needs.join(", "), question }));
    case "datasets":
      return datasetFormats.map((name) => ({ name }));
    case "exit-codes":
      return Object.entries(exitCodes).map(([outcome, code]) => ({ code, outcome }));
  }
}
