import { open } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { detectFormat, importPromptfoo, openDataset, type PromptfooImport } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { datasetOptions, datasetRows } from "../eval/eval-rows.js";

/** `octavo eval import FILE`: a promptfoo configuration, or any dataset, as Octavo writes them. */
export default defineCommand({
  arguments: { "<file>": "promptfooconfig.yaml, or a file of cases in any known format" },
  options: {
    ...datasetRows,
    out: option.text("--out <folder>", "folder for cases.jsonl and eval.yaml", { isRequired: true }),
  },
  async run({ out, ...flags }, path: string) {
    const { format = await detectFormat(path), ...options } = datasetOptions(flags);
    const [given] = Object.keys(options);
    if (format === "promptfoo" && given !== undefined)
      throw new OctavoError(
        "invalid_option",
        `--${given}: ${path} is a promptfoo configuration, which has none`,
        {
          param: given,
        },
      );
    const imported = format === "promptfoo" ? await importPromptfoo(path) : undefined;
    const dataset = imported?.dataset ?? (await openDataset(path, { ...options, format }));
    makeFolder(out);
    const cases = await writeFresh(join(out, "cases.jsonl"), async (write) => {
      let count = 0;
      for await (const evalCase of dataset.cases()) {
        await write(`${JSON.stringify(evalCase)}\n`);
        count += 1;
      }
      return count;
    });
    process.stdout.write(`${join(out, "cases.jsonl")}: ${cases} cases\n`);
    if (imported === undefined) return;
    const file = join(out, "eval.yaml");
    await writeFresh(file, (write) => write(gateOf(imported)));
    process.stdout.write(`${file}: ${imported.evaluators.length} evaluators; name the server in it\n`);
    for (const { at, type, reason } of imported.unsupported)
      process.stdout.write(`not imported: ${at}, ${type}: ${reason}\n`);
    for (const warning of imported.warnings) process.stdout.write(`warning: ${warning}\n`);
  },
});

/** Every evaluator is expected to pass, as promptfoo counts a test. YAML reads JSON, so values are written as JSON. */
function gateOf({ description, evaluators, providers }: PromptfooImport): string {
  const expectations = evaluators.map(({ name, as }) => `pass_rate(${as ?? name}) >= 1 by estimate`);
  return [
    "version: 1",
    `name: ${JSON.stringify((description ?? "imported from promptfoo").slice(0, 120))}`,
    "targets:",
    `  # promptfoo asked ${providers.length === 0 ? "nobody by name" : JSON.stringify(providers)}`,
    "  candidate: { base_url: http://127.0.0.1:8000/v1 }",
    "datasets:",
    "  imported: { path: cases.jsonl }",
    "evaluators:",
    ...evaluators.map((spec) => `  - ${JSON.stringify(spec)}`),
    "health:",
    "  quality:",
    ...expectations.map((text) => `    - ${JSON.stringify(text)}`),
    "",
  ].join("\n");
}

/** Never overwrites a file: it may be someone's work. */
async function writeFresh<Result>(
  path: string,
  fill: (write: (text: string) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const file = await open(path, "wx").catch((cause: unknown) => {
    throw new OctavoError("invalid_option", `--out: ${path} exists already, or cannot be written`, {
      param: "out",
      cause,
    });
  });
  try {
    return await fill((text) => file.appendFile(text));
  } finally {
    await file.close();
  }
}
