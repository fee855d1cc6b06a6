import { dirname, resolve } from "node:path";
import { OpenAiTarget } from "@octavo/evals";
import {
  openSearchJournal,
  optimizePrompts,
  type OptimizeResult,
  parseOptimizeConfig,
  planOptimization,
} from "@octavo/optimize";
import { definedFields } from "@octavo/protocol";
import { option } from "@octavo/protocol/options";
import { type ChatTarget, openChatTarget } from "../chat/chat-target.js";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";
import { readTextOf, writeTextOf } from "../output/files.js";
import { createOptimizeLine } from "../output/optimize-line.js";
import { printable } from "@octavo/report/text-table";

/** `octavo optimize --config optimize.yaml`: better texts for the model that serves, as a diff. Exit code 2 says no better. */
export default defineCommand({
  options: {
    config: option.text("--config <file>", "what is tuned, on which cases, by which optimiser", {
      default: "optimize.yaml",
    }),
    validate: option.toggle("--validate", "check the file without sending any request"),
    journal: option.text("--journal <file>", "keeps what was asked: the same command goes on from there", {
      defaultText: "beside the configuration",
    }),
    diff: option.text("--diff <file>", "write the diff to a file; - for standard output", { default: "-" }),
    write: option.toggle("--write", "write the files, if the result is better"),
    json: option.text("--json <file>", "write the whole result as JSON"),
  },
  async run(flags) {
    const file = parseOptimizeConfig(flags.config, await readTextOf("config", flags.config));
    if (flags.validate) {
      process.stdout.write(`${flags.config}: ${file.config.name}\n`);
      return;
    }
    const folder = dirname(resolve(flags.config));
    const path = flags.journal ?? `${resolve(flags.config)}.journal`;
    const line = createOptimizeLine(process.stderr);
    const { result, files } = await interruptible(
      async (signal) => {
        const loaded: ChatTarget[] = [];
        try {
          const planned = await planOptimization(file, {
            folder,
            environment: process.env,
            signal,
            async load(name, model, { temperature = 0, max_tokens: maxTokens, extra_body: extraBody }) {
              const opened = await openChatTarget({
                target: model,
                model: undefined,
                apiKey: undefined,
                maxModelLen: undefined,
                signal,
              });
              loaded.push(opened);
              return new OpenAiTarget({
                name,
                baseUrl: opened.baseUrl,
                model: opened.model,
                parameters: { temperature, ...definedFields({ maxTokens, extraBody }) },
                ...definedFields({ apiKey: opened.apiKey }),
              });
            },
          });
          for (const warning of planned.warnings) process.stderr.write(`octavo: ${printable(warning)}\n`);
          await using journal = await openSearchJournal(path);
          const found = await optimizePrompts({ ...planned.options, journal, onProgress: line.update });
          return { result: found, files: planned.files };
        } finally {
          for (const one of loaded) await one[Symbol.asyncDispose]();
        }
      },
      () => process.stderr.write(`\nstopping; the same command goes on from ${path}\n`),
    ).finally(line.end);
    const diff = files.diffOf(result.winner);
    process.stderr.write(summaryOf(result));
    await writeTextOf("diff", flags.diff, diff);
    if (flags.json !== undefined)
      await writeTextOf("json", flags.json, `${JSON.stringify({ ...result, diff }, null, 2)}\n`);
    if (flags.write && result.verdict === "better")
      for (const written of await files.write(result.winner, folder))
        process.stderr.write(`wrote ${written}\n`);
    if (result.verdict !== "better") process.exitCode = noBetter;
  },
});

/** As of `octavo compare`, 1 being an error. */
const noBetter = 2;

function summaryOf({ summary, spent, spentOnHeldOut, teacher, candidates, endedBy }: OptimizeResult): string {
  const { replies, unusable, repeated } = teacher;
  const lines = [
    summary,
    `${candidates.length} candidates met validation; ${spent.calls} calls, ${spent.tokens} tokens, ${spent.gpuSeconds.toFixed(1)} GPU-seconds searching, ${spentOnHeldOut.calls} calls on held-out cases`,
    ...(replies === 0
      ? []
      : [`the teacher wrote ${replies} replies, ${unusable} unusable, ${repeated} texts that were known`]),
    ...(endedBy === undefined ? [] : [`ended because ${endedBy}`]),
  ];
  return lines.map((one) => `${printable(one)}\n`).join("");
}
