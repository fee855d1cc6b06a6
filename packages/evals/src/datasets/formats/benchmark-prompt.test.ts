import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { parquetWriteFile } from "hyparquet-writer";
import { evaluatorTable } from "../../evaluators/table.js";
import { sampleOf, scoreOf } from "../../evaluators/testing/sample.js";
import { openDataset } from "../open-dataset.js";
import { collected } from "../testing/sources.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-prompts-"));
});
after(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text);
  return join(folder, name);
}

async function writeQuestions(name: string): Promise<string> {
  const filename = join(folder, name);
  const texts = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" } as const;
  await Promise.resolve(
    parquetWriteFile({
      filename,
      schema: [
        { name: "root", num_children: 7 },
        { name: "question_id", type: "INT64", repetition_type: "OPTIONAL" },
        { name: "question", ...texts },
        { name: "options", converted_type: "LIST", repetition_type: "OPTIONAL", num_children: 1 },
        { name: "list", repetition_type: "REPEATED", num_children: 1 },
        { name: "element", ...texts },
        { name: "answer", ...texts },
        { name: "answer_index", type: "INT64", repetition_type: "OPTIONAL" },
        { name: "cot_content", ...texts },
        { name: "category", ...texts },
      ],
      columnData: [
        { name: "question_id", data: [1n, 2n] },
        { name: "question", data: ["One and one?", "Which burns?"] },
        {
          name: "options",
          data: [
            ["1", "2", "N/A"],
            ["wood", "water"],
          ],
        },
        { name: "answer", data: ["B", "A"] },
        { name: "answer_index", data: [1n, 0n] },
        { name: "cot_content", data: ["A: It is two. The answer is (B).", "A: Wood. The answer is (A)."] },
        { name: "category", data: ["math", "chemistry"] },
      ],
    }),
  );
  return filename;
}

test("MMLU-Pro is asked as its script asks: instruction, worked examples of the category, question", async () => {
  const path = await writeQuestions("test.parquet");
  const prompt = await write("initial_prompt.txt", "You know {$}. Answer about {$}.\n");
  const examples = await writeQuestions("validation.parquet");
  const [first, second] = await collected(await openDataset(path, { prompt, examples }));
  assert.equal(
    first?.messages[0]?.content,
    "You know math. Answer about math.\n\n" +
      "Question: One and one?\nOptions: A. 1\nB. 2\nAnswer: It is two. The answer is (B).\n\n" +
      "Question: One and one?\nOptions: A. 1\nB. 2\nAnswer: Let's think step by step.\n\n",
  );
  assert.match(second?.messages[0]?.content ?? "", /^You know chemistry.*Question: Which burns/s);
  assert.match(
    String(first?.metadata["prompt"]),
    /^prompt initial_prompt\.txt \(sha256 [0-9a-f]{12}\), 1 examples$/,
  );
  const [own] = await collected(await openDataset(path));
  assert.match(String(own?.metadata["prompt"]), /not comparable/);
});

test("LongBench v2's placeholders are filled once, HLE's prompt comes before the question", async () => {
  const row = {
    _id: "1",
    question: "Who signs $C_A$?",
    choice_A: "a",
    choice_B: "b",
    choice_C: "c",
    choice_D: "d",
    answer: "C",
    context: " The $Q$ document. ",
    domain: "d",
  };
  const path = await write("data.json", JSON.stringify([row]));
  const prompt = await write("0shot.txt", "<text>\n$DOC$\n</text>\n$Q$\n(A) $C_A$ (D) $C_D$");
  const [asked] = await collected(await openDataset(path, { prompt }));
  assert.equal(
    asked?.messages[0]?.content,
    "<text>\nThe $Q$ document.\n</text>\nWho signs $C_A$?\n(A) a (D) d",
  );
  const filename = join(folder, "hle.parquet");
  await Promise.resolve(
    parquetWriteFile({
      filename,
      columnData: [
        { name: "id", data: ["q"], type: "STRING" },
        { name: "question", data: ["Why?"], type: "STRING" },
        { name: "image", data: [""], type: "STRING" },
        { name: "answer", data: ["because"], type: "STRING" },
        { name: "answer_type", data: ["exactMatch"], type: "STRING" },
      ],
    }),
  );
  const system = await write("hle.txt", "Explanation, answer, confidence.\n");
  const [hle] = await collected(await openDataset(filename, { prompt: system }));
  assert.deepEqual(hle?.messages, [
    { role: "system", content: "Explanation, answer, confidence." },
    { role: "user", content: "Why?" },
  ]);
});

test("a prompt of another benchmark, an empty one and options without effect are refused", async () => {
  const path = await writeQuestions("refused.parquet");
  const other = await write("other.txt", "$DOC$ and $Q$");
  await assert.rejects(
    openDataset(path, { prompt: other }),
    /no prompt of this benchmark: it has none of \{\$\}/,
  );
  await assert.rejects(openDataset(path, { prompt: await write("empty.txt", " ") }), /is empty/);
  await assert.rejects(openDataset(path, { prompt: join(folder, "none.txt") }), /cannot be read/);
  await assert.rejects(openDataset(path, { examples: path }), /give prompt too/);
  const cases = await write("cases.jsonl", '{"input": "a", "expected": "b"}');
  await assert.rejects(openDataset(cases, { prompt: other }), /prompt: .*is read as jsonl/);
});

test("letters are found as the benchmarks' scripts find them", async () => {
  const passes = async (scoring: string, output: string, gold: string): Promise<boolean> => {
    const [evaluator] = evaluatorTable.create([{ name: "multiple_choice", options: { scoring } }]);
    const score = await scoreOf(evaluator!, sampleOf({ output, case: { expected: { outputs: [gold] } } }));
    return score.status === "scored" && score.passed;
  };
  for (const [scoring, output, gold, isRight] of [
    ["mmlu-pro", "The answer is (C).", "C", true],
    ["mmlu-pro", "the answer is J", "J", true],
    ["mmlu-pro", "First Answer: A\nthen Answer: B and Answer: D", "A", true],
    ["mmlu-pro", "Neither A nor B, I think", "I", true],
    ["mmlu-pro", "no letter", "A", false],
    ["longbench-v2", "**The correct answer is (B)**", "B", true],
    ["longbench-v2", "The correct answer is D", "D", true],
    ["longbench-v2", "Answer: D", "D", false],
    ["any", "Answer: D", "D", true],
  ] as const)
    assert.equal(await passes(scoring, output, gold), isRight, `${scoring}: ${output}`);
});
