import { basename } from "node:path";
import type { EvalCase } from "../../cases/eval-case.js";
import { CaseIds } from "../case-ids.js";
import type { Dataset } from "../dataset.js";
import { FieldReader } from "../fields.js";
import { ParquetFile } from "../parquet-file.js";
import { type ParquetRow, readParquetRows } from "../parquet.js";
import { quoted } from "../place.js";
import { type BenchmarkPrompt, ownPrompt, readBenchmarkPrompt } from "./benchmark-prompt.js";

/** Columns that tell HLE from other files. */
export const hleColumns = ["id", "question", "image", "answer", "answer_type"] as const;
const readColumns = [...hleColumns, "category", "raw_subject"] as const;
const answerTypes = ["exactMatch", "multipleChoice"] as const;

/**
 * Humanity's Last Exam (Phan et al., 2025, arXiv 2501.14249) from its Parquet files, which are gated and not to be passed
 * on: rationales and the canary are never read, so that nothing written of a case can hold them. Questions with images
 * are skipped and counted. With a file of the benchmark's system prompt, questions are asked after it as they are. Answers that are not letters need a judge: those cases are tagged `free-form`.
 */
export async function hleDataset(
  path: string,
  { prompt: promptPath }: { readonly prompt?: string } = {},
): Promise<Dataset> {
  const prompt = promptPath === undefined ? undefined : await readBenchmarkPrompt(promptPath, []);
  const file = await ParquetFile.open(path);
  const { columns } = file;
  await file.close();
  const present = readColumns.filter((name) => columns.includes(name));
  let withImage = 0;
  return {
    name: basename(path),
    size: undefined,
    skipped: () => (withImage === 0 ? {} : { "needs an image": withImage }),
    async *cases() {
      const ids = new CaseIds();
      withImage = 0;
      for await (const row of readParquetRows(path, present)) {
        const { image } = row.record;
        if (image === undefined || image === null || image === "") yield hleCase(row, ids, prompt);
        else withImage++;
      }
    },
  };
}

function hleCase({ record, place }: ParquetRow, ids: CaseIds, prompt: BenchmarkPrompt | undefined): EvalCase {
  const fields = new FieldReader(record, place);
  const need = (name: string): string => {
    const text = fields.text(name);
    if (text === undefined) throw fields.fail(name, "is missing");
    return text;
  };
  const id = ids.claim(need("id"), place);
  const question = need("question");
  const answer = need("answer");
  const answerType = answerTypes.find((known) => known === record["answer_type"]);
  if (answerType === undefined) {
    throw fields.fail(
      "answer_type",
      `must be one of ${answerTypes.join(", ")}, but is ${quoted(record["answer_type"])}`,
    );
  }
  const category = fields.text("category");
  const subject = fields.text("raw_subject");
  const isChoice = answerType === "multipleChoice";
  const ask = isChoice
    ? "Answer with the letter of the right option alone."
    : "Give the final answer alone, as short as it can be.";
  return {
    id,
    messages:
      prompt === undefined
        ? [{ role: "user", content: `${question}\n\n${ask}` }]
        : [
            { role: "system", content: prompt.text.trim() },
            { role: "user", content: question },
          ],
    tools: [],
    context: undefined,
    expected: { outputs: [answer] },
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: [isChoice ? "multiple-choice" : "free-form", ...(category === undefined ? [] : [category])],
    metadata: {
      benchmark: "hle",
      prompt: prompt?.label ?? ownPrompt,
      ...(subject !== undefined && { subject }),
    },
  };
}
