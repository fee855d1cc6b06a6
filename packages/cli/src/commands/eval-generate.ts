import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { readFile, rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  type Dataset,
  openDataset,
  rulerDataset,
  type RulerQuestion,
  rulerTaskNames,
  serverTokens,
} from "@octavo/evals";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { option, valueType } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { keyOf } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";

/** `octavo eval generate ruler`: RULER's cases, as JSON lines. */
export default defineCommand({
  options: {
    target: option.text(
      "--target <url>",
      "the server whose tokens count (POST /tokenize, as Octavo and vLLM have it)",
      { isRequired: true },
    ),
    model: option.text("--model <name>", "its model", { isRequired: true }),
    apiKeyEnv: option.text("--api-key-env <name>", "environment variable with its key"),
    lengths: option.of(
      valueType.list(valueType.integer({ min: 1 })),
      "--lengths <tokens...>",
      "lengths in tokens, the answer's included, e.g. 4K 8K",
      { default: [4096, 8192, 16_384] },
    ),
    tasks: option.choices(rulerTaskNames, "--tasks <name...>", "tasks", {
      defaultText: "all whose files are given",
    }),
    count: option.integer("--count <n>", "cases of each task and length; the benchmark has 500", {
      min: 1,
      default: 50,
    }),
    seed: option.text("--seed <text>", "another seed gives other cases", { default: "1" }),
    overheadTokens: option.integer("--overhead-tokens <n>", "tokens that the chat template adds", {
      min: 0,
      default: 32,
    }),
    text: option.text("--text <file>", "a long text to hide needles in, for the tasks that need one"),
    questions: option.text(
      "--questions <file>",
      "cases with context and expected answers, for qa_1 and qa_2",
    ),
    out: option.text("--out <file>", "output file; - for standard output", { default: "-" }),
  },
  async run(flags) {
    const apiKey = keyOf("api-key-env", flags.apiKeyEnv);
    const base = flags.target.replace(/\/+$/, "");
    await interruptible(async (signal) => {
      const server = {
        baseUrl: /\/v\d+$/.test(base) ? base : `${base}/v1`,
        model: flags.model,
        ...(apiKey !== undefined && { apiKey }),
      };
      const dataset = rulerDataset({
        lengthsTokens: flags.lengths,
        count: flags.count,
        seed: flags.seed,
        overheadTokens: flags.overheadTokens,
        countTokens: serverTokens(server, signal),
        ...(flags.tasks !== undefined && { tasks: flags.tasks }),
        ...(flags.text !== undefined && { text: await readText(flags.text) }),
        ...(flags.questions !== undefined && { questions: await readQuestions(flags.questions) }),
      });
      await writeCases(dataset, flags.out);
    });
  },
});

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new OctavoError("dataset_invalid", `${path} cannot be read: ${systemProblem(cause)}`, { cause });
  }
}

/** Questions with their documents; cases without a context or an expected answer are skipped. */
async function readQuestions(path: string): Promise<RulerQuestion[]> {
  const questions: RulerQuestion[] = [];
  for await (const { messages, context, expected } of (await openDataset(path)).cases()) {
    const question = messages.findLast(({ role }) => role === "user")?.content;
    if (typeof question !== "string" || context === undefined || expected.outputs === undefined) continue;
    questions.push({ question, answers: expected.outputs, documents: [context] });
  }
  if (questions.length > 0) return questions;
  throw new OctavoError("dataset_invalid", `${path} has no case with a context and expected answers`);
}

/** As JSON lines, a case at a time. A file has its name only once it is whole. */
async function writeCases(dataset: Dataset, path: string): Promise<void> {
  if (path === "-") {
    for await (const evalCase of dataset.cases())
      if (!process.stdout.write(`${JSON.stringify(evalCase)}\n`)) await once(process.stdout, "drain");
    return;
  }
  const partial = `${path}.partial`;
  try {
    await pipeline(Readable.from(linesOf(dataset)), createWriteStream(partial));
    await rename(partial, path);
  } catch (thrown) {
    await rm(partial, { force: true });
    throw thrown;
  }
}

async function* linesOf(dataset: Dataset): AsyncGenerator<string> {
  for await (const evalCase of dataset.cases()) yield `${JSON.stringify(evalCase)}\n`;
}
