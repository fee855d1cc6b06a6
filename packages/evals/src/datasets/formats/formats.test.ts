import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { parquetWriteFile } from "hyparquet-writer";
import { collected, textSource } from "../testing/sources.js";
import { bfclDataset } from "./bfcl.js";
import { hleDataset } from "./hle.js";
import { longBenchDataset } from "./longbench-v2.js";
import { mmluProDataset } from "./mmlu-pro.js";
import { parsePythonCall } from "./python-call.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-formats-"));
  await mkdir(join(folder, "possible_answer"));
  await mkdir(join(folder, "multi_turn_func_doc"));
});
after(() => rm(folder, { recursive: true, force: true }));

const optionLists = [
  ["one", "two", "three"],
  ["red", "blue", "green", "grey", "pink", "teal", "lime", "gold", "plum", "rust"],
];

async function writeMmluPro(
  name: string,
  answers: readonly string[],
  indices: readonly number[],
): Promise<string> {
  const filename = join(folder, name);
  await Promise.resolve(
    parquetWriteFile({
      filename,
      schema: [
        { name: "root", num_children: 7 },
        { name: "question_id", type: "INT64", repetition_type: "OPTIONAL" },
        { name: "question", type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" },
        { name: "options", converted_type: "LIST", repetition_type: "OPTIONAL", num_children: 1 },
        { name: "list", repetition_type: "REPEATED", num_children: 1 },
        { name: "element", type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" },
        { name: "answer", type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" },
        { name: "answer_index", type: "INT64", repetition_type: "OPTIONAL" },
        { name: "cot_content", type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" },
        { name: "category", type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" },
      ],
      columnData: [
        { name: "question_id", data: [70n, 71n] },
        { name: "question", data: ["Which is the first?", "Which is a metal?"] },
        { name: "options", data: optionLists },
        { name: "answer", data: [...answers] },
        { name: "answer_index", data: indices.map(BigInt) },
        { name: "cot_content", data: ["", "thought"] },
        { name: "category", data: ["math", "chemistry"] },
      ],
    }),
  );
  return filename;
}

test("MMLU-Pro: options are lettered, the letter is the gold", async () => {
  const dataset = await mmluProDataset(await writeMmluPro("mmlu.parquet", ["A", "H"], [0, 7]));
  assert.equal(dataset.size, 2);
  const [first, second] = await collected(dataset);
  assert.equal(first?.id, "mmlu-pro-70");
  assert.match(
    first?.messages[0]?.content ?? "",
    /^Which is the first\?\n\nA\. one\nB\. two\nC\. three\n\n.*\(A to C\)\.$/,
  );
  assert.deepEqual(first?.expected, { outputs: ["A"] });
  assert.deepEqual(second?.expected, { outputs: ["H"] });
  assert.match(second?.messages[0]?.content ?? "", /J\. rust\n/);
  assert.deepEqual(second?.tags, ["chemistry"]);
  assert.equal(JSON.stringify(second).includes("thought"), false, "the worked answer is not read");
});

test("MMLU-Pro: rows whose letter, index and options disagree are refused", async () => {
  await assert.rejects(
    collected(await mmluProDataset(await writeMmluPro("index.parquet", ["A", "H"], [0, 6]))),
    /index\.parquet row 2: field "answer_index" is 6, but the answer H is option 7/,
  );
  await assert.rejects(
    collected(await mmluProDataset(await writeMmluPro("letter.parquet", ["D", "H"], [3, 7]))),
    /row 1: field "answer" must be the letter of one of the 3 options/,
  );
});

const longBenchRow = (id: string, more: object = {}): object => ({
  _id: id,
  domain: "Single-Document QA",
  sub_domain: "Legal",
  difficulty: "hard",
  length: "short",
  question: "Who signs?",
  choice_A: "the buyer",
  choice_B: "the seller",
  choice_C: "both",
  choice_D: "nobody",
  answer: "C",
  context: "Both parties sign this contract.",
  ...more,
});

test("LongBench v2: one array, questions about one document are a cluster", async () => {
  const text = JSON.stringify([
    longBenchRow("66f"),
    longBenchRow("67a", { answer: "A" }),
    longBenchRow("68", { context: "Else." }),
  ]);
  const cases = await collected(longBenchDataset(textSource(text, [50], "data.json")));
  assert.deepEqual(
    cases.map(({ id, expected }) => [id, expected.outputs?.[0]]),
    [
      ["66f", "C"],
      ["67a", "A"],
      ["68", "C"],
    ],
  );
  assert.equal(cases[0]?.cluster, cases[1]?.cluster);
  assert.notEqual(cases[0]?.cluster, cases[2]?.cluster);
  assert.equal(cases[0]?.context, "Both parties sign this contract.");
  assert.ok(cases[0]?.messages[0]?.content?.includes("D. nobody"));
  assert.deepEqual(cases[0]?.tags, ["Single-Document QA", "difficulty:hard", "length:short"]);
  await assert.rejects(
    collected(
      longBenchDataset(
        textSource(
          JSON.stringify([longBenchRow("1"), longBenchRow("2", { answer: "E" })]),
          [99],
          "data.json",
        ),
      ),
    ),
    /data\.json element 2: field "answer" must be one of A, B, C, D, but is "E"/,
  );
});

test("HLE: questions with images are skipped and counted, the canary and rationales are never kept", async () => {
  const filename = join(folder, "hle.parquet");
  const canary = "canary-1234";
  await Promise.resolve(
    parquetWriteFile({
      filename,
      columnData: [
        { name: "id", data: ["a", "b", "c"], type: "STRING" },
        { name: "question", data: ["How many?", "What is shown?", "Which? A. x B. y"], type: "STRING" },
        { name: "image", data: ["", "data:image/png;base64,AAAA", ""], type: "STRING" },
        { name: "answer", data: ["12", "a cat", "B"], type: "STRING" },
        { name: "answer_type", data: ["exactMatch", "exactMatch", "multipleChoice"], type: "STRING" },
        { name: "rationale", data: ["because secret", "", ""], type: "STRING" },
        { name: "category", data: ["Math", "Other", "Biology"], type: "STRING" },
        { name: "canary", data: [canary, canary, canary], type: "STRING" },
      ],
    }),
  );
  const dataset = await hleDataset(filename);
  const cases = await collected(dataset);
  assert.deepEqual(
    cases.map(({ id, tags }) => [id, tags]),
    [
      ["a", ["free-form", "Math"]],
      ["c", ["multiple-choice", "Biology"]],
    ],
  );
  assert.deepEqual(dataset.skipped?.(), { "needs an image": 1 });
  const written = JSON.stringify(cases);
  assert.equal(written.includes(canary) || written.includes("secret"), false);
});

async function writeBfcl(
  name: string,
  questions: readonly object[],
  answers?: readonly object[],
): Promise<string> {
  const lines = (records: readonly object[]): string =>
    records.map((record) => JSON.stringify(record)).join("\n");
  await writeFile(join(folder, name), lines(questions));
  if (answers !== undefined) await writeFile(join(folder, "possible_answer", name), lines(answers));
  return join(folder, name);
}

const play = {
  name: "spotify.play",
  description: "Plays.",
  parameters: {
    type: "dict",
    properties: {
      artist: { type: "string" },
      volume: { type: "float" },
      options: { type: "dict", properties: { loud: { type: "any" } } },
      list: { type: "tuple", items: { type: "float" } },
    },
    required: ["artist"],
  },
};
const ask = (content: string): object => ({ role: "user", content });

test("BFCL: function documents become tools, ground truths keep their accepted values", async () => {
  const path = await writeBfcl(
    "BFCL_v4_parallel.json",
    [
      { id: "parallel_0", question: [[ask("Play both.")]], function: [play] },
      { id: "live_irrelevance_1-0-0", question: [[ask("Hello")]], function: [play] },
      { id: "live_relevance_2-0-0", question: [[ask("Play")]], function: [play] },
    ],
    [
      {
        id: "parallel_0",
        ground_truth: [
          { "spotify.play": { artist: ["A", "a"], volume: [20, ""] } },
          { "spotify.play": { artist: ["B"] } },
        ],
      },
    ],
  );
  const [both, none, any] = await collected(bfclDataset(path));
  assert.deepEqual(both?.tools[0], {
    type: "function",
    function: {
      name: "spotify_play",
      description: "Plays.",
      parameters: {
        type: "object",
        properties: {
          artist: { type: "string" },
          volume: { type: "number" },
          options: { type: "object", properties: { loud: {} } },
          list: { type: "array", items: { type: "number" } },
        },
        required: ["artist"],
      },
    },
  });
  assert.deepEqual(both?.expected.toolCalls, [
    { name: "spotify_play", arguments: { artist: ["A", "a"], volume: [20, ""] } },
    { name: "spotify_play", arguments: { artist: ["B"] } },
  ]);
  assert.deepEqual(both?.tags, ["tools", "bfcl:parallel"]);
  assert.deepEqual(none?.expected, { toolCalls: [] });
  assert.deepEqual(any?.expected, {});
});

test("BFCL: of several turns the first is asked and the others are counted; its calls are read from Python, in order", async () => {
  const document = (name: string, properties: object): string =>
    JSON.stringify({ name, description: name, parameters: { type: "dict", properties } });
  await writeFile(
    join(folder, "multi_turn_func_doc", "gorilla_file_system.json"),
    [document("cd", { folder: { type: "string" } }), document("sort", {}), document("rm", {})].join("\n"),
  );
  const path = await writeBfcl(
    "BFCL_v4_multi_turn_base.json",
    [
      {
        id: "multi_turn_base_0",
        question: [[ask("Go to temp, then sort.")], [ask("And back.")], [ask("And again.")]],
        involved_classes: ["GorillaFileSystem"],
        missed_function: { "1": ["rm"] },
      },
    ],
    [
      {
        id: "multi_turn_base_0",
        ground_truth: [
          ["cd('temp')", "sort(file_name='it\\'s.txt', lines=[1, 2.5], all=True)"],
          ["cd(folder='..')"],
          [],
        ],
      },
    ],
  );
  const dataset = bfclDataset(path);
  const [only] = await collected(dataset);
  const skipped = { "a later turn, and there is no gold_results with what the calls before it gave": 2 };
  assert.deepEqual(dataset.skipped?.(), skipped);
  await collected(dataset);
  assert.deepEqual(dataset.skipped?.(), skipped, "counted again each time");
  assert.deepEqual(
    only?.tools.map((tool) => tool.function.name),
    ["cd", "sort"],
  );
  assert.deepEqual(only?.expected, {
    toolCalls: [
      { name: "cd", arguments: { folder: ["temp"] } },
      { name: "sort", arguments: { file_name: ["it's.txt"], lines: [[1, 2.5]], all: [true] } },
    ],
    isOrderFree: false,
  });
  assert.deepEqual(only?.metadata["laterToolCalls"], [[{ name: "cd", arguments: { folder: [".."] } }], []]);
});

test("BFCL: missing golds, unknown classes and calls that are no literals are named", async () => {
  const simple = { id: "simple_0", question: [[ask("x")]], function: [play] };
  await assert.rejects(
    collected(bfclDataset(await writeBfcl("BFCL_v4_a.json", [simple]))),
    /BFCL_v4_a\.json line 1: field "ground_truth" is missing, and there is no .*possible_answer/,
  );
  await assert.rejects(
    collected(
      bfclDataset(await writeBfcl("BFCL_v4_b.json", [simple], [{ id: "simple_9", ground_truth: [] }])),
    ),
    /has none for "simple_0"/,
  );
  await assert.rejects(
    collected(
      bfclDataset(
        await writeBfcl("BFCL_v4_c.json", [{ ...simple, ground_truth: [["open(__import__('os'))"]] }]),
      ),
    ),
    /field "ground_truth\[0\]\[0\]" must be a call with literal arguments/,
  );
  await assert.rejects(
    collected(
      bfclDataset(
        await writeBfcl("BFCL_v4_d.json", [
          { id: "multi_turn_base_1", question: [[ask("x")]], involved_classes: ["Nope"] },
        ]),
      ),
    ),
    /field "involved_classes\[0\]" is "Nope", which is not known/,
  );
});

test("Python calls: literals and nothing else", () => {
  assert.deepEqual(parsePythonCall("f()"), { name: "f", positional: [], named: {} });
  assert.deepEqual(parsePythonCall(" a.b( -1.5e3 , (1, None), k = {'x': [\"y\\n\"]}, )"), {
    name: "a.b",
    positional: [-1500, [1, null]],
    named: { k: { x: ["y\n"] } },
  });
  for (const text of [
    "",
    "f",
    "f(",
    "f(x)",
    "f(1)g",
    "f(1 2)",
    "f('a)",
    "f({1: 2})",
    "f(1+1)",
    `f(${"[".repeat(99)})`,
  ]) {
    assert.equal(parsePythonCall(text), undefined, text);
  }
});
