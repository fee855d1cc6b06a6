import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import { type CsvOptions, csvDataset } from "./csv.js";
import { collected, textSource } from "./testing/sources.js";

const read = (text: string, options?: CsvOptions, path = "cases.csv") =>
  collected(csvDataset(textSource(text, [16], path), options));

test("columns are fields, cells of lists and objects hold JSON, empty cells are absent", async () => {
  const cases = await read(
    [
      "id,input,expected,tags,tools,max_tokens,region",
      '1,"Say ""hi"", please",hi,"greeting, short","[{""name"":""f""}]",5,eu',
      "2,Plain,,,,,",
    ].join("\r\n"),
  );
  assert.equal(cases.length, 2);
  const [first, second] = cases;
  assert.equal(first?.messages[0]?.content, 'Say "hi", please');
  assert.deepEqual(first?.expected, { outputs: ["hi"] });
  assert.deepEqual(first?.tags, ["greeting", "short"]);
  assert.equal(first?.tools[0]?.function.name, "f");
  assert.equal(first?.parameters.maxTokens, 5);
  assert.deepEqual(first?.metadata, { region: "eu" });
  assert.deepEqual(second?.expected, {});
  assert.deepEqual(second?.metadata, {});
});

test("columns may be mapped, tabs separate .tsv, a byte order mark is dropped", async () => {
  const [only] = await read(
    "\uFEFFQuestion\tRight\nWhy?\tBecause.\n",
    { columns: { input: "Question", expected: "Right" } },
    "cases.tsv",
  );
  assert.equal(only?.messages[0]?.content, "Why?");
  assert.deepEqual(only?.expected, { outputs: ["Because."] });
});

const bad: readonly [name: string, text: string, says: RegExp, options?: CsvOptions][] = [
  ["too many cells", "input,expected\na,b\nc,d,e\n", /cases\.csv line 3 has 3 cells, but the header has 2/],
  [
    "an open quote",
    'input\nfine\n"never closed\nmore\n',
    /cases\.csv line 3 begins a row with a quote that is never/,
  ],
  ["a stray quote", 'input,x\n"a"b,c\n', /line 2 begins a row with a misplaced quote/],
  ["a repeated column", "input,input\na,b\n", /line 1 names the column "input" twice/],
  [
    "an unknown column",
    "q,a\n1,2\n",
    /line 1 has no column "Q" for the field "input"; it has "q", "a"/,
    {
      columns: { input: "Q" },
    },
  ],
  [
    "a mapped column beside one of that name",
    "input,q\n1,2\n",
    /has a column "input" beside/,
    {
      columns: { input: "q" },
    },
  ],
  ["no JSON where it is needed", "input,tools\na,f\n", /line 2: field "tools" must hold JSON, but holds "f"/],
  ["a header alone", "input,expected\n", /cases\.csv holds no cases/],
  ["nothing", "", /cases\.csv holds no cases/],
  [
    "a row after one of several lines",
    'input,id\n"a\nb",1\nc,1\n',
    /line 4: field "id" is "1", which an earlier/,
  ],
];

for (const [name, text, says, options] of bad) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(read(text, options), (error: Error & { code?: string }) => {
      assert.equal(error.code, "dataset_invalid");
      assert.match(error.message, says);
      return true;
    });
  });
}

test("a reader that stops closes the file", async () => {
  let close = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    close = resolve;
  });
  const endless = {
    path: "endless.csv",
    async *bytes() {
      try {
        yield Buffer.from("input\n");
        for (;;) yield await Promise.resolve(Buffer.from("x\n"));
      } finally {
        close();
      }
    },
  };
  for await (const evalCase of csvDataset(endless).cases()) {
    assert.ok(evalCase.id);
    break;
  }
  await closed;
});

const cell = fc.string({
  unit: fc.constantFrom("a", "é", "𝒳", " ", ",", '"', "\n", "\r\n", ";", "\t"),
  minLength: 1,
  maxLength: 10,
});

test("any cells read back as they were, whatever the pieces of the file", async () => {
  const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 4 }),
      fc.constantFrom("\n", "\r\n"),
      fc.boolean(),
      async (rows, pieces, lineEnd, endsInLineEnd) => {
        const lines = ["input,note", ...rows.map((cells) => cells.map(quote).join(","))];
        const text = lines.join(lineEnd) + (endsInLineEnd ? lineEnd : "");
        const cases = await collected(csvDataset(textSource(text, pieces)));
        assert.deepEqual(
          cases.map(({ messages, metadata }) => [messages[0]?.content, metadata["note"]]),
          rows,
        );
      },
    ),
    { seed: 11, numRuns: 150 },
  );
});
