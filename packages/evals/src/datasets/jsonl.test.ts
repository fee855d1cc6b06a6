import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import type { EvalCase } from "../cases/eval-case.js";
import type { ByteSource } from "./byte-source.js";
import { jsonlDataset } from "./jsonl.js";
import { collected, textSource } from "./testing/sources.js";

const lines = (...records: readonly unknown[]): string =>
  records.map((record) => JSON.stringify(record)).join("\n");
const read = (text: string): Promise<EvalCase[]> =>
  collected(jsonlDataset(textSource(text, [64], "cases.jsonl")));
const readOne = async (record: unknown): Promise<EvalCase> => {
  const [only] = await read(JSON.stringify(record));
  assert.ok(only);
  return only;
};

test("a question and its answers", async () => {
  const evalCase = await readOne({
    id: 7,
    input: "What is 2 + 2?",
    system: "Be short.",
    context: ["Two and two is four.", "Sums."],
    expected_output: ["4", "four"],
    tenant: "acme",
    tags: ["sums"],
    max_tokens: 8,
    temperature: 0,
    difficulty: "easy",
  });
  assert.deepEqual(evalCase, {
    id: "7",
    messages: [
      { role: "system", content: "Be short." },
      { role: "user", content: "What is 2 + 2?" },
    ],
    tools: [],
    context: "Two and two is four.\n\nSums.",
    expected: { outputs: ["4", "four"] },
    parameters: { maxTokens: 8, temperature: 0 },
    tenant: "acme",
    cluster: undefined,
    tags: ["sums"],
    metadata: { difficulty: "easy" },
  });
});

test("calls with exact arguments accept one value each, in any spelling of tools and calls", async () => {
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const evalCase = await readOne({
    input: "Weather in Paris?",
    tools: [
      { name: "weather", parameters },
      { type: "function", function: { name: "noop" } },
    ],
    expected_tool_calls: [
      { name: "weather", arguments: { city: "Paris" } },
      { function: { name: "noop", arguments: '{"deep":[1,2]}' } },
    ],
  });
  assert.deepEqual(evalCase.tools, [
    { type: "function", function: { name: "weather", parameters } },
    { type: "function", function: { name: "noop" } },
  ]);
  assert.deepEqual(evalCase.expected.toolCalls, [
    { name: "weather", arguments: { city: ["Paris"] } },
    { name: "noop", arguments: { deep: [[1, 2]] } },
  ]);
});

test("octavo-mini's generator: calls stand for their markup, tasks and kinds are tags, calls get ids", async () => {
  const evalCase = await readOne({
    id: "tools-heldout-1-0",
    task: "tools",
    kind: "chain-second",
    messages: [
      { role: "user", content: "Find it and lock it." },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ type: "function", function: { name: "find", arguments: { name: "x" } } }],
      },
      { role: "tool", content: '{"id":3}' },
    ],
    tools: [{ type: "function", function: { name: "lock", description: "Locks.", parameters: {} } }],
    context: null,
    gold: '<tool_call>\n{"name": "lock", "arguments": {"id": 3}}\n</tool_call>',
    expectedCalls: [{ name: "lock", arguments: { id: 3 } }],
  });
  assert.deepEqual(evalCase.tags, ["tools", "kind:chain-second"]);
  assert.deepEqual(evalCase.expected, { toolCalls: [{ name: "lock", arguments: { id: [3] } }] });
  assert.equal(evalCase.context, undefined);
  assert.equal(evalCase.messages[1]?.tool_calls?.[0]?.id, "call_0");
  assert.equal(evalCase.messages[1]?.tool_calls?.[0]?.function.arguments, '{"name":"x"}');
  assert.equal(evalCase.messages[2]?.tool_call_id, "call_0");
  assert.deepEqual(evalCase.metadata, {});
});

test("no call expected leaves the gold text", async () => {
  const evalCase = await readOne({ input: "Hello", gold: "Hi.", expectedCalls: [] });
  assert.deepEqual(evalCase.expected, { outputs: ["Hi."], toolCalls: [] });
});

test("a conversation's last turn is the gold when there is no other", async () => {
  const messages = [
    { role: "user", content: "Name a colour." },
    { role: "assistant", content: "Blue." },
  ];
  const evalCase = await readOne({ messages });
  assert.deepEqual(evalCase.messages, messages.slice(0, 1));
  assert.deepEqual(evalCase.expected, { outputs: ["Blue."] });
  const prefilled = await readOne({ messages, gold: "Blue. And red." });
  assert.deepEqual(prefilled.messages, messages);
});

test("ids are derived from what records say and stay when others are added", async () => {
  const alone = await read(lines({ input: "a" }, { input: "b" }, { input: "b" }));
  const later = await read(lines({ input: "new" }, { input: "a" }, { input: "b" }));
  assert.equal(alone[0]?.id, later[1]?.id);
  assert.equal(alone[1]?.id, later[2]?.id);
  assert.equal(new Set(alone.map(({ id }) => id)).size, 3);
});

const badLines: readonly [line: string, says: RegExp][] = [
  ["{", /cases\.jsonl line 2 is not JSON/],
  ["[1]", /line 2 must be a JSON object, but is a list of 1/],
  ["{}", /line 2 has no input: one of the fields messages, input/],
  ['{"messages":[]}', /line 2: field "messages" is empty/],
  ['{"messages":[{"role":"bot","content":"x"}]}', /line 2: field "messages\[0\]\.role" must be one of/],
  ['{"messages":[{"role":"user"}]}', /line 2: field "messages\[0\]\.content" must be text, but is missing/],
  [
    '{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}',
    /field "messages\[0\]\.content\[0\]" must be a text part, but is "image_url"/,
  ],
  ['{"input":"x","id":"first"}', /field "id" is "first", which an earlier case has/],
  ['{"input":"x","id":""}', /field "id" is empty/],
  ['{"input":"x","tags":[1]}', /field "tags\[0\]" must be text/],
  ['{"input":"x","schema":"no"}', /field "schema" must be an object/],
  ['{"input":"x","tools":[{"description":"y"}]}', /field "tools\[0\]\.name" must be the name of a function/],
  [
    '{"input":"x","expected_tool_calls":[{"name":"f","arguments":"{"}]}',
    /arguments" is text that is not JSON/,
  ],
  ['{"input":"x","max_tokens":0}', /field "max_tokens" must be a whole number above 0/],
  ['{"input":"x","tool_choice":"maybe"}', /field "tool_choice" must be one of none, auto, required/],
  [
    '{"input":"x","expected":{"toolCalls":[{"name":"f","arguments":{"a":1}}]}}',
    /arguments\.a" must be the list of/,
  ],
  ['{"input":"\u00ff"}', /line 2 is not valid UTF-8/],
];

for (const [line, says] of badLines) {
  test(`refused: ${line}`, async () => {
    const encoding = line.includes("\u00ff") ? "latin1" : "utf8";
    const bytes = Buffer.concat([Buffer.from('{"input":"x","id":"first"}\n'), Buffer.from(line, encoding)]);
    const source: ByteSource = {
      path: "cases.jsonl",
      async *bytes() {
        yield await Promise.resolve(bytes);
      },
    };
    await assert.rejects(collected(jsonlDataset(source)), (error: Error & { code?: string }) => {
      assert.equal(error.code, "dataset_invalid");
      assert.match(error.message, says);
      return true;
    });
  });
}

test("missing files, folders and empty files are named", async () => {
  await assert.rejects(
    collected(jsonlDataset("/nowhere/cases.jsonl")),
    /\/nowhere\/cases\.jsonl cannot be read: there is no such/,
  );
  await assert.rejects(collected(jsonlDataset("/")), /it is a folder/);
  await assert.rejects(read("\n\r\n  \n"), /cases\.jsonl holds no cases/);
});

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const json = fc.jsonValue({ maxDepth: 2 });
const evalCases = fc.uniqueArray(
  fc.record({
    id: fc.string({ minLength: 1, maxLength: 8 }),
    messages: fc.array(
      fc.record({ role: fc.constantFrom("system" as const, "user" as const), content: text }),
      { minLength: 1, maxLength: 3 },
    ),
    tools: fc.array(
      fc.record({
        type: fc.constant("function" as const),
        function: fc.record({ name: fc.string({ minLength: 1, maxLength: 5 }), description: text }),
      }),
      { maxLength: 2 },
    ),
    context: fc.option(text, { nil: undefined }),
    expected: fc.oneof(
      fc.record({ outputs: fc.array(text, { minLength: 1, maxLength: 2 }) }),
      fc.record({
        toolCalls: fc.array(
          fc.record({
            name: fc.string({ minLength: 1, maxLength: 5 }),
            arguments: fc.dictionary(fc.constantFrom("a", "b"), fc.array(json, { maxLength: 2 })),
          }),
          { maxLength: 2 },
        ),
        isOrderFree: fc.boolean(),
      }),
      fc.constant({}),
    ),
    parameters: fc.record({ maxTokens: fc.integer({ min: 1 }), seed: fc.nat() }, { requiredKeys: [] }),
    tenant: fc.option(fc.string({ maxLength: 5 }), { nil: undefined }),
    cluster: fc.option(fc.string({ maxLength: 5 }), { nil: undefined }),
    tags: fc.array(text, { maxLength: 2 }),
    metadata: fc.dictionary(fc.constantFrom("x", "y"), json),
  }),
  { selector: ({ id }) => id, minLength: 1, maxLength: 4 },
);

test("cases written as JSON read back as they were, whatever the pieces of the file", async () => {
  await fc.assert(
    fc.asyncProperty(
      evalCases,
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 }),
      fc.constantFrom("\n", "\r\n"),
      async (cases, pieces, lineEnd) => {
        const written = cases.map((evalCase) => JSON.stringify(evalCase)).join(lineEnd);
        const back = await collected(jsonlDataset(textSource(`\uFEFF${written}`, pieces)));
        assert.deepEqual(JSON.parse(JSON.stringify(back)), JSON.parse(JSON.stringify(cases)));
      },
    ),
    { seed: 7, numRuns: 150 },
  );
});

test("a million cases are never in memory: the reader is at most one chunk ahead of its consumer", async () => {
  const numCases = 1_000_000;
  const linesPerPiece = 1000;
  let produced = 0;
  let consumed = 0;
  let furthestAhead = 0;
  const source: ByteSource = {
    path: "million.jsonl",
    async *bytes() {
      while (produced < numCases) {
        let piece = "";
        for (let line = 0; line < linesPerPiece; line++)
          piece += `{"id":"c${produced++}","input":"Say ${line}."}\n`;
        furthestAhead = Math.max(furthestAhead, produced - consumed);
        yield await Promise.resolve(Buffer.from(piece));
      }
    },
  };
  for await (const { id } of jsonlDataset(source).cases()) {
    assert.equal(id, `c${consumed}`);
    consumed++;
  }
  assert.equal(consumed, numCases);
  assert.ok(furthestAhead <= linesPerPiece, `${furthestAhead} cases ahead`);
});

test("a consumer that stops closes the file", async () => {
  let isClosed = false;
  const source: ByteSource = {
    path: "endless.jsonl",
    async *bytes() {
      try {
        for (;;) yield await Promise.resolve(Buffer.from('{"input":"x"}\n'));
      } finally {
        isClosed = true;
      }
    },
  };
  for await (const evalCase of jsonlDataset(source).cases()) {
    assert.ok(evalCase.id);
    break;
  }
  assert.ok(isClosed);
});
