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
    ["s.jsonl", '{"start_ms":1,"duration_ms":2,"span_id":"a","operation":"chat"}', "spans"],
    ["o.json", '{"resourceSpans":[]}', "spans"],
    ["t.jsonl", '{"input":"x","start_time":"2026-01-01","end_time":"2026-01-02"}', "jsonl"],
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

test("a limited dataset is a sample in which every kind has its share, the same for the same seed", async () => {
  const kinds = [
    ...Array.from({ length: 150 }, (_, index) => ({ input: `chat ${index}`, tags: ["chat"] })),
    ...Array.from({ length: 60 }, (_, index) => ({ input: `sum ${index}`, tags: ["math"], gold: "1" })),
    ...Array.from({ length: 3 }, (_, index) => ({ input: `call ${index}`, tags: ["tools"] })),
  ];
  const path = await file("mixed.jsonl", kinds.map((one) => JSON.stringify(one)).join("\n"));
  const everything = await collected(await openDataset(path));
  for (let seed = 0; seed < 20; seed++) {
    const limited = await openDataset(path, { limit: 20, seed });
    const sample = await collected(limited);
    const count = (tag: string) => sample.filter(({ tags }) => tags.includes(tag)).length;
    assert.deepEqual([count("chat"), count("math"), count("tools")], [14, 5, 1], `seed ${seed}`);
    assert.deepEqual(await collected(limited), sample, "the same each time it is read");
    assert.deepEqual(await collected(await openDataset(path, { limit: 20, seed })), sample);
    const places = sample.map(({ id }) => everything.findIndex((one) => one.id === id));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
      "in the file's order",
    );
  }
  const drawn = new Set<string>();
  for (let seed = 0; seed < 200; seed++)
    for (const { id } of await collected(await openDataset(path, { limit: 20, seed }))) drawn.add(id);
  assert.equal(drawn.size, kinds.length, "every case may be drawn");
  for (const limit of [1, 2, 212, 213, 500])
    assert.equal((await collected(await openDataset(path, { limit }))).length, Math.min(limit, 213));
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
