import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { Writable } from "node:stream";
import {
  type Dataset,
  openDataset,
  rulerDataset,
  type RulerQuestion,
  rulerTaskNames,
  serverTokens,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { keyOf } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";

/** `octavo eval generate ruler`: RULER's cases, as JSON lines. */
export const evalGenerateRuler = defineCommand({
  options: {
    target: {
      flag: "target",
      type: option.text("url"),
      isRequired: true,
      help: "the server whose tokens count (POST /tokenize, as Octavo and vLLM have it)",
    },
    model: { flag: "model", type: option.text("name"), isRequired: true, help: "its model" },
    apiKeyEnv: { flag: "api-key-env", type: option.text("name"), help: "environment variable with its key" },
    lengths: {
      flag: "lengths",
      type: option.list(option.integer({ min: 1 }, "tokens")),
      default: [4096, 8192, 16_384],
      help: "lengths in tokens, the answer's included, e.g. 4K 8K",
    },
    tasks: {
      flag: "tasks",
      type: option.list(option.choice(rulerTaskNames)),
      defaultText: "all whose files are given",
      help: "tasks",
    },
    count: {
      flag: "count",
      type: option.integer({ min: 1 }),
      default: 50,
      help: "cases of each task and length; the benchmark has 500",
    },
    seed: { flag: "seed", type: option.text("text"), default: "1", help: "another seed gives other cases" },
    overheadTokens: {
      flag: "overhead-tokens",
      type: option.integer({ min: 0 }),
      default: 32,
      help: "tokens that the chat template adds",
    },
    text: {
      flag: "text",
      type: option.text("file"),
      help: "a long text to hide needles in, for the tasks that need one",
    },
    questions: {
      flag: "questions",
      type: option.text("file"),
      help: "cases with context and expected answers, for qa_1 and qa_2",
    },
    out: { flag: "out", type: option.text("file"), default: "-", help: "output file; - for standard output" },
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
    const { message } = OctavoError.from(cause);
    throw new OctavoError("dataset_invalid", `${path} cannot be read: ${message}`, { cause });
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

/** As JSON lines, a case at a time. */
async function writeCases(dataset: Dataset, path: string): Promise<void> {
  const out: Writable = path === "-" ? process.stdout : createWriteStream(path);
  const written = path === "-" ? undefined : once(out, "finish");
  for await (const evalCase of dataset.cases()) {
    if (!out.write(`${JSON.stringify(evalCase)}\n`)) await once(out, "drain");
  }
  if (path !== "-") out.end();
  await written;
}
