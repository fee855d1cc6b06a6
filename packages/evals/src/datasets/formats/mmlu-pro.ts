import { basename } from "node:path";
import type { CaseMessage, EvalCase } from "../../cases/eval-case.js";
import { CaseIds } from "../case-ids.js";
import type { Dataset } from "../dataset.js";
import { FieldReader } from "../fields.js";
import { ParquetFile } from "../parquet-file.js";
import { type ParquetRow, readParquetRows } from "../parquet.js";
import { invalidFile } from "../place.js";
import { type BenchmarkPrompt, filledPrompt, ownPrompt, readBenchmarkPrompt } from "./benchmark-prompt.js";
import { askForLetter, choiceLetters } from "./multiple-choice.js";

/** Columns that tell MMLU-Pro from other files. */
export const mmluProColumns = ["question_id", "question", "options", "answer", "answer_index"] as const;
const readColumns = [...mmluProColumns, "category", "src"] as const;

export interface MmluProOptions {
  /** The benchmark's file of its instruction, in which `{$}` is the category. Default: Octavo's own, for the letter alone. */
  readonly prompt?: string;
  /** With it: the benchmark's validation file, whose worked answers are examples for questions of their category. */
  readonly examples?: string;
}

/**
 * MMLU-Pro (Wang et al., 2024, arXiv 2406.01574) from its Parquet files: up to ten options each. Every case asks for the
 * letter alone, without examples, or as the benchmark does: its instruction, five worked examples, and the question. The letter
 * is the gold; categories are tags.
 */
export async function mmluProDataset(
  path: string,
  { prompt: promptPath, examples: examplesPath }: MmluProOptions = {},
): Promise<Dataset> {
  const file = await ParquetFile.open(path);
  const { numRows, columns } = file;
  await file.close();
  const present = readColumns.filter((name) => columns.includes(name));
  const prompt = promptPath === undefined ? undefined : await readBenchmarkPrompt(promptPath, ["{$}"]);
  const examples = examplesPath === undefined ? undefined : await readExamples(examplesPath);
  return {
    name: basename(path),
    size: numRows,
    async *cases() {
      const ids = new CaseIds();
      for await (const row of readParquetRows(path, present)) yield mmluProCase(row, ids, prompt, examples);
    },
  };
}

interface Question {
  readonly question: string;
  readonly options: readonly string[];
  readonly category: string | undefined;
}

/** Worked examples by category. */
type Examples = ReadonlyMap<string, readonly string[]>;

function readQuestion(fields: FieldReader): Question {
  const question = fields.text("question");
  const options = fields.texts("options");
  if (question === undefined) throw fields.fail("question", "is missing");
  if (options === undefined || options.length < 2 || options.length > choiceLetters.length) {
    throw fields.fail("options", `must be 2 to ${choiceLetters.length} texts`);
  }
  return { question, options, category: fields.text("category") };
}

function mmluProCase(
  { record, place }: ParquetRow,
  ids: CaseIds,
  prompt: BenchmarkPrompt | undefined,
  examples: Examples | undefined,
): EvalCase {
  const fields = new FieldReader(record, place);
  const questionId = fields.number("question_id");
  const answer = fields.text("answer");
  const answerIndex = fields.number("answer_index");
  const source = fields.text("src");
  if (questionId === undefined) throw fields.fail("question_id", "is missing");
  const asked = readQuestion(fields);
  const { question, options, category } = asked;
  const index = answer === undefined ? -1 : choiceLetters.indexOf(answer);
  if (answer?.length !== 1 || index < 0 || index >= options.length) {
    throw fields.fail("answer", `must be the letter of one of the ${options.length} options`);
  }
  if (answerIndex !== undefined && answerIndex !== index) {
    throw fields.fail("answer_index", `is ${answerIndex}, but the answer ${answer} is option ${index}`);
  }
  const shown = examples?.get(category ?? "") ?? [];
  return {
    id: ids.claim(`mmlu-pro-${questionId}`, place),
    messages: prompt === undefined ? askForLetter(question, options) : asPublished(prompt, shown, asked),
    tools: [],
    context: undefined,
    expected: { outputs: [answer] },
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: category === undefined ? [] : [category],
    metadata: {
      benchmark: "mmlu-pro",
      prompt: prompt === undefined ? ownPrompt : `${prompt.label}, ${shown.length} examples`,
      options,
      answerIndex: index,
      ...(source !== undefined && { source }),
    },
  };
}

/** Instruction, examples and question in one message, laid out as the benchmark's script does. */
function asPublished(prompt: BenchmarkPrompt, examples: readonly string[], asked: Question): CaseMessage[] {
  const instruction = filledPrompt(prompt, { "{$}": asked.category ?? "general knowledge" });
  const content = `${instruction.trimEnd()}\n\n${examples.join("")}${laidOut(asked, firstWords)}`;
  return [{ role: "user", content }];
}

/** With which the benchmark has every answer begin. */
const firstWords = "Let's think step by step.";

function laidOut({ question, options }: Question, answer: string): string {
  // options that the benchmark itself leaves out
  const listed = options.filter((option) => option !== "N/A");
  const lines = listed.map((option, index) => `${choiceLetters[index]}. ${option}\n`);
  return `Question: ${question}\nOptions: ${lines.join("")}Answer: ${answer}\n\n`;
}

async function readExamples(path: string): Promise<Examples> {
  const examples = new Map<string, string[]>();
  const columns = ["question", "options", "cot_content", "category"];
  for await (const { record, place } of readParquetRows(path, columns)) {
    const fields = new FieldReader(record, place);
    const asked = readQuestion(fields);
    const worked = fields.text("cot_content");
    if (worked === undefined) throw fields.fail("cot_content", "is missing: examples need worked answers");
    const text = laidOut(asked, worked.replace(/^A: /, ""));
    const own = examples.get(asked.category ?? "");
    if (own === undefined) examples.set(asked.category ?? "", [text]);
    else own.push(text);
  }
  if (examples.size === 0) throw invalidFile(path, "holds no examples");
  return examples;
}
