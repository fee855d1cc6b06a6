import { basename } from "node:path";
import type { EvalCase } from "../../cases/eval-case.js";
import { CaseIds } from "../case-ids.js";
import type { Dataset } from "../dataset.js";
import { FieldReader } from "../fields.js";
import { ParquetFile } from "../parquet-file.js";
import { type ParquetRow, readParquetRows } from "../parquet.js";
import { askForLetter, choiceLetters } from "./multiple-choice.js";

/** Columns that tell MMLU-Pro from other files. */
export const mmluProColumns = ["question_id", "question", "options", "answer", "answer_index"] as const;
const readColumns = [...mmluProColumns, "category", "src"] as const;

/**
 * MMLU-Pro (Wang et al., 2024, arXiv 2406.01574) from its Parquet files: up to ten options each. Every case asks, without
 * examples, for the letter alone, which is its gold for `exact_match`; categories are tags.
 */
export async function mmluProDataset(path: string): Promise<Dataset> {
  const file = await ParquetFile.open(path);
  const { numRows, columns } = file;
  await file.close();
  const present = readColumns.filter((name) => columns.includes(name));
  return {
    name: basename(path),
    size: numRows,
    async *cases() {
      const ids = new CaseIds();
      for await (const row of readParquetRows(path, present)) yield mmluProCase(row, ids);
    },
  };
}

function mmluProCase({ record, place }: ParquetRow, ids: CaseIds): EvalCase {
  const fields = new FieldReader(record, place);
  const questionId = fields.number("question_id");
  const question = fields.text("question");
  const options = fields.texts("options");
  const answer = fields.text("answer");
  const answerIndex = fields.number("answer_index");
  const category = fields.text("category");
  const source = fields.text("src");
  if (questionId === undefined) throw fields.fail("question_id", "is missing");
  if (question === undefined) throw fields.fail("question", "is missing");
  if (options === undefined || options.length < 2 || options.length > choiceLetters.length) {
    throw fields.fail("options", `must be 2 to ${choiceLetters.length} texts`);
  }
  const index = answer === undefined ? -1 : choiceLetters.indexOf(answer);
  if (answer?.length !== 1 || index < 0 || index >= options.length) {
    throw fields.fail("answer", `must be the letter of one of the ${options.length} options`);
  }
  if (answerIndex !== undefined && answerIndex !== index) {
    throw fields.fail("answer_index", `is ${answerIndex}, but the answer ${answer} is option ${index}`);
  }
  return {
    id: ids.claim(`mmlu-pro-${questionId}`, place),
    messages: askForLetter(question, options),
    tools: [],
    context: undefined,
    expected: { outputs: [answer] },
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: category === undefined ? [] : [category],
    metadata: {
      benchmark: "mmlu-pro",
      options,
      answerIndex: index,
      ...(source !== undefined && { source }),
    },
  };
}
