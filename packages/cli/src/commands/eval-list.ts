import { checkTable, datasetFormats, evaluatorTable, exitCodes } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option, valueType } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { textTable } from "@octavo/report/text-table";

const subjects = valueType.choice(["evaluators", "checks", "datasets", "exit-codes"]);
type Subject = ReturnType<typeof subjects.parse>;

/** `octavo eval list`: evaluators, checks, formats and exit codes. */
export default defineCommand({
  arguments: { "[what]": `${subjects.expects} (default: evaluators)` },
  options: {
    json: option.toggle("--json", "print JSON instead of a table"),
  },
  async run({ json }, what = "evaluators") {
    if (!subjects.accepts(what))
      throw new OctavoError("invalid_option", `what to list: expected ${subjects.expects}`, {
        param: "what",
      });
    const rows = rowsOf(subjects.parse(what, undefined));
    const heads = Object.keys(rows[0] ?? {});
    process.stdout.write(
      json
        ? `${JSON.stringify(rows, null, 2)}\n`
        : textTable(
            rows,
            heads.map((head) => ({ head, of: (row) => row[head] })),
          ),
    );
    return Promise.resolve();
  },
});

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
