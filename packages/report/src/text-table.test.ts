import assert from "node:assert/strict";
import test from "node:test";
import { figureTable, type TextColumn, textTable } from "./text-table.js";

interface Row {
  readonly name: string;
  readonly count: number | null;
  readonly why: string;
}
const columns: readonly TextColumn<Row>[] = [
  { head: "name", of: ({ name }) => name },
  { head: "could not tell", of: ({ count }) => count },
  { head: "why", of: ({ why }) => why },
];
const words =
  "the variant answers with other tools than the baseline in more than two of a hundred cases".split(" ");
const rows: readonly Row[] = [
  { name: "tool-calls", count: 1200, why: words.join(" ") },
  { name: "json", count: null, why: "" },
];
const linesOf = (text: string): readonly string[] => text.trimEnd().split("\n");

test("a table that fits is one line a row, whatever the width", () => {
  const [head = "", first = "", second = ""] = linesOf(textTable(rows, columns, Infinity));
  assert.equal(head, "name        could not tell  why");
  assert.equal(first, `tool-calls            1200  ${words.join(" ")}`);
  assert.equal(second, "json                     -");
  assert.equal(textTable(rows, columns, first.length), textTable(rows, columns, Infinity));
});

test("figures stand under each other, and their intervals wrap at spaces", () => {
  const heads = ["role", "tokens", "mean"];
  const cells = [
    ["all", "1200", "0.01"],
    ["", "", "[0.001, 0.02]"],
  ];
  assert.equal(
    figureTable(heads, cells, Infinity),
    "role  tokens           mean\nall     1200           0.01\n              [0.001, 0.02]\n",
  );
  assert.deepEqual(linesOf(figureTable(heads, cells, 22)), [
    "role  tokens      mean",
    "all     1200      0.01",
    "               [0.001,",
    "                 0.02]",
  ]);
});

test("output that is no terminal is never wrapped", (t) => {
  const { isTTY } = process.stdout;
  t.after(() => {
    process.stdout.isTTY = isTTY;
  });
  process.stdout.isTTY = false;
  assert.equal(linesOf(textTable(rows, columns)).length, 3);
});

for (const width of [80, 60, 40])
  test(`on ${width} columns words wrap, and none is lost or cut`, () => {
    const lines = linesOf(textTable(rows, columns, width));
    assert.ok(
      lines.every(({ length }) => length <= width),
      lines.join("\n"),
    );
    const shown = lines.join(" ").split(/\s+/);
    for (const word of [...words, "tool-calls", "json", "1200"]) assert.ok(shown.includes(word), word);
  });

test("a name longer than the terminal is broken, to its last letter; numbers are not", () => {
  const long = `${"customer-support-assistant-".repeat(4)}B`;
  const lines = linesOf(textTable([{ name: long, count: 1234567, why: "slow" }], columns, 50));
  assert.ok(
    lines.every(({ length }) => length <= 50),
    lines.join("\n"),
  );
  assert.equal(lines.map((line) => /^\S*/.exec(line)?.[0]).join(""), `name${long}`);
  assert.ok(lines.some((line) => / 1234567 /.test(line)));
});

test("a terminal too narrow for the columns gets longer lines, whole", () => {
  const shown = textTable(rows, columns, 5);
  assert.match(shown, /1200/);
  assert.equal(shown.replaceAll(/\s/g, "").includes("baseline"), true);
});
