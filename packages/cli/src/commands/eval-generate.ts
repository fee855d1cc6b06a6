import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { Writable } from "node:stream";
import {
  type Dataset,
  openDataset,
  rulerDataset,
  type RulerQuestion,
  type RulerTaskName,
  rulerTaskNames,
  serverTokens,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Command, Option } from "commander";
import { evalAction } from "../eval/eval-action.js";
import { interruptible } from "../interruptible.js";
import { parseCount } from "../options/parse.js";

interface RulerFlags {
  readonly target: string;
  readonly model: string;
  readonly apiKeyEnv?: string;
  readonly lengths: readonly string[];
  readonly tasks?: readonly RulerTaskName[];
  readonly count: number;
  readonly seed: string;
  readonly overheadTokens: number;
  readonly text?: string;
  readonly questions?: string;
  readonly out: string;
}

/** `octavo eval generate`: cases that are drawn anew, as JSON lines. */
export function evalGenerateCommand(): Command {
  const ruler = new Command("ruler")
    .description("RULER's tasks at any length, in the tokens of the model that will be tested")
    .requiredOption(
      "--target <url>",
      "the server whose tokens count (POST /tokenize, as Octavo and vLLM have it)",
    )
    .requiredOption("--model <name>", "its model")
    .option("--api-key-env <name>", "environment variable with its key")
    .option("--lengths <tokens...>", "wanted lengths, with the answer's tokens", ["4K", "8K", "16K"])
    .addOption(
      new Option("--tasks <name...>", "tasks (default: all that what is given suffices for)").choices(
        rulerTaskNames,
      ),
    )
    .option("--count <n>", "cases of each task and length; the benchmark has 500", parseCount(1), 50)
    .option("--seed <text>", "another seed gives other cases", "1")
    .option("--overhead-tokens <n>", "tokens that the chat template adds", parseCount(0), 32)
    .option("--text <file>", "a long text to hide needles in, for the tasks that want one")
    .option("--questions <file>", "cases with context and expected answers, for qa_1 and qa_2")
    .option("--out <file>", "where to; - for standard output", "-")
    .action(evalAction(generateRuler));
  return new Command("generate").description("draw cases anew").addCommand(ruler);
}

async function generateRuler(flags: RulerFlags): Promise<void> {
  const { apiKeyEnv } = flags;
  const apiKey = apiKeyEnv === undefined ? undefined : process.env[apiKeyEnv];
  if (apiKeyEnv !== undefined && apiKey === undefined) {
    throw new OctavoError("invalid_option", `--api-key-env: ${apiKeyEnv} is not set`);
  }
  const parseLength = parseCount(1);
  const base = flags.target.replace(/\/+$/, "");
  await interruptible(async (signal) => {
    const server = {
      baseUrl: /\/v\d+$/.test(base) ? base : `${base}/v1`,
      model: flags.model,
      ...(apiKey !== undefined && { apiKey }),
    };
    const dataset = rulerDataset({
      lengthsTokens: flags.lengths.map(parseLength),
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
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const { message } = OctavoError.from(cause);
    throw new OctavoError("dataset_invalid", `${path} cannot be read: ${message}`, { cause });
  }
}

/** Questions with what they are answered from; cases without either are no questions over documents. */
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
