import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { parquetWriteFile } from "hyparquet-writer";
import { detectFormat } from "./dataset-format.js";
import { openDataset } from "./open-dataset.js";
import { collected } from "./testing/sources.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-datasets-"));
});
after(() => rm(folder, { recursive: true, force: true }));

async function file(name: string, content: string): Promise<string> {
  await writeFile(join(folder, name), content);
  return join(folder, name);
}

const longBench = {
  _id: "1",
  question: "q",
  choice_A: "a",
  choice_B: "b",
  choice_C: "c",
  choice_D: "d",
  answer: "A",
  context: "t",
};

test("formats are told by content first, then by extension", async () => {
  const told: readonly [name: string, content: string, format: string][] = [
    ["a.jsonl", '{"input":"x"}\n', "jsonl"],
    ["a.txt", '\uFEFF  {"input":"x"}', "jsonl"],
    ["a.json", '[{"input":"x"}]', "json"],
    ["b.json", '{"input":"x"}', "jsonl"],
    ["data.json", JSON.stringify([longBench]), "longbench-v2"],
    ["BFCL_v4_simple.json", '{"id":"simple_0","question":[[]],"function":[]}', "bfcl"],
    ["a.csv", "input\nx\n", "csv"],
    ["a.tsv", "input\nx\n", "csv"],
    ["promptfooconfig.yaml", "prompts: []\n", "promptfoo"],
  ];
  for (const [name, content, format] of told) {
    assert.equal(await detectFormat(await file(name, content)), format, name);
  }
  const columns = (...names: readonly string[]) => names.map((name) => ({ name, data: ["x"] }));
  for (const [names, format] of [
    [["question_id", "question", "options", "answer", "answer_index"], "mmlu-pro"],
    [["id", "question", "image", "answer", "answer_type"], "hle"],
    [["input", "expected"], "parquet"],
  ] as const) {
    const filename = join(folder, `${format}.bin`);
    await Promise.resolve(parquetWriteFile({ filename, columnData: columns(...names) }));
    assert.equal(await detectFormat(filename), format);
  }
});

test("files of no known format, empty ones and missing ones are refused", async () => {
  for (const [name, content, says] of [
    ["a.md", "# Notes", /begins with neither \{ nor \[ nor PAR1/],
    ["a.bin", "\0\0\0", /is of no known format; known are jsonl/],
    ["empty.jsonl", " \n", /empty\.jsonl is empty/],
    ["none.json", "[]", /none\.json holds no cases/],
  ] as const) {
    await assert.rejects(openDataset(await file(name, content)), says);
  }
  await assert.rejects(openDataset(join(folder, "missing.jsonl")), /there is no such file/);
  await assert.rejects(openDataset(await file("c.yaml", "prompts: []")), /import it with importPromptfoo/);
});

test("a dataset may be limited; nothing behind the limit is read", async () => {
  const path = await file("three.jsonl", '{"input":"a"}\n{"input":"b"}\nnot a case');
  assert.equal((await collected(await openDataset(path, { limit: 2 }))).length, 2);
  await assert.rejects(collected(await openDataset(path)), /line 3 is not JSON/);
  await assert.rejects(openDataset(path, { limit: 0 }), /limit: expected a whole number above 0/);
});

test("cases in one JSON array, and a format that is named", async () => {
  const path = await file("cases.json", '[{"input":"a","gold":"1"},\n{"input":"b"}]');
  const cases = await collected(await openDataset(path));
  assert.deepEqual(cases[0]?.expected, { outputs: ["1"] });
  assert.equal((await collected(await openDataset(path, { format: "json" }))).length, 2);
  await assert.rejects(
    collected(await openDataset(await file("d.json", "[1]"))),
    /element 1 must be an object, but is 1/,
  );
});

test("what is said of a file's cells reaches its reader, and what its format does not take is refused", async () => {
  const path = await file("questions.csv", "Question;Right answer;note\nWhy?;So;x\n");
  const columns = { input: "Question", expected: "Right answer" };
  const [first] = await collected(await openDataset(path, { columns, delimiter: ";" }));
  assert.equal(first?.messages[0]?.content, "Why?");
  assert.deepEqual([first?.expected, first?.metadata], [{ outputs: ["So"] }, { note: "x" }]);
  const lines = await file("lines.jsonl", '{"input":"x"}\n');
  for (const [at, options, says] of [
    [lines, { columns }, /columns: .* is read as jsonl, which has none; only csv and parquet may have it/],
    [lines, { delimiter: ";" }, /delimiter: .*only csv may have it/],
    [path, { answers: lines }, /answers: .* is read as csv, which has none; only bfcl may have it/],
    [path, { columns: { inptu: "Question" } }, /a case has no field "inptu"; it has id, messages, system/],
    [path, { delimiter: ";;" }, /delimiter: expected one character/],
    [path, { delimiter: '"' }, /delimiter: expected one character/],
  ] as const)
    await assert.rejects(openDataset(at, options), says);
});
