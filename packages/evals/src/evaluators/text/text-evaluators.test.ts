import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import * as fc from "fast-check";
import { evaluatorTable } from "../table.js";
import { sampleOf, scoreOf, valueOf } from "../testing/sample.js";
import { similarity } from "./edit-distance.js";
import { fencedBlocks } from "./fences.js";
import { sentencesOf } from "./sentences.js";
import { textEvaluators } from "./text-evaluators.js";

type Row = readonly [
  spec: unknown,
  output: string,
  expected: readonly string[] | undefined,
  value: number | string,
];

const rows: readonly Row[] = [
  ["exact_match", " Paris\n", ["Berlin", "Paris"], 1],
  ["exact_match", "paris", ["Paris"], 0],
  ["exact_match", "cafe\u0301", ["caf\u00e9"], 1],
  [{ name: "exact_match", options: { ignoreCase: true, ignorePunctuation: true } }, "paris.", ["Paris"], 1],
  [{ name: "exact_match", options: { collapseSpace: true } }, "a \n b", ["a b"], 1],
  [{ name: "exact_match", options: { value: "x" } }, "x", undefined, 1],
  ["exact_match", "x", undefined, "skipped"],
  ["exact_match", "x", [], "skipped"],
  ["contains", "the city of Paris", ["Paris"], 1],
  ["contains_any", "Paris", ["Berlin", "Paris"], 1],
  ["contains_any", "Rome", ["Berlin", "Paris"], 0],
  ["contains_all", "Paris, Berlin", ["Berlin", "Paris"], 1],
  ["contains_all", "Paris", ["Berlin", "Paris"], 0],
  ["starts_with", "Yes, it is", ["No", "Yes"], 1],
  ["ends_with", "it is so. ", ["so."], 1],
  [{ name: "contains", not: true, options: { value: "sorry" } }, "here it is", undefined, 1],
  [{ name: "regex", options: { pattern: "^\\d{3}-\\d{4}$" } }, "555-1234", undefined, 1],
  [{ name: "regex", options: { pattern: "B", flags: "i" } }, "abc", undefined, 1],
  [{ name: "regex", options: { pattern: "b|abc", full: true } }, "abcd", undefined, 0],
  [{ name: "regex", options: { pattern: "(?<=a)b(?!c)" } }, "abd", undefined, 1],
  ["fuzzy_match", "kitten", ["sitting"], 1 - 3 / 7],
  ["fuzzy_match", "", [""], 1],
  ["fuzzy_match", "😀b", ["😀a"], 0.5],
  ["one_line", "one\n", undefined, 1],
  ["one_line", "one\u2028two", undefined, 0],
  ["one_line", " \n", undefined, 0],
  [{ name: "length_between", options: { min: 2, max: 3 } }, "😀😀😀", undefined, 1],
  [{ name: "length_between", options: { unit: "words", max: 2 } }, "one two three", undefined, 0],
  [{ name: "length_between", options: { unit: "sentences", min: 2 } }, "One. Two!", undefined, 1],
  [{ name: "length_between", options: { unit: "lines", min: 2, max: 2 } }, "a\r\nb\r\n", undefined, 1],
  ["is_email", "ada.l+x@example.co.uk", undefined, 1],
  ["is_email", "ada@example", undefined, 0],
  ["is_email", "a..b@example.com", undefined, 0],
  ["is_email", `${"a".repeat(65)}@example.com`, undefined, 0],
  ["is_email", "write to ada@example.com", undefined, 0],
];

test("texts are scored as the table says", async () => {
  for (const [spec, output, outputs, value] of rows) {
    const sample = sampleOf({ output, case: { expected: outputs === undefined ? {} : { outputs } } });
    const found = await valueOf(textEvaluators, spec, sample);
    const message = `${JSON.stringify(spec)} of ${JSON.stringify(output)}`;
    if (typeof value === "number" && typeof found === "number")
      assert.ok(Math.abs(found - value) < 1e-12, message);
    else assert.equal(found, value, message);
  }
});

test("a pattern that runs away on an output is cut off and has failed", async () => {
  const [evaluator] = evaluatorTable.create([
    { name: "regex", options: { pattern: "^(\\w+\\s?)*$", timeoutMs: 50 } },
  ]);
  const score = await scoreOf(evaluator!, sampleOf({ output: `${"word ".repeat(2000)}!` }));
  assert.equal(score.status === "failed" ? score.code : score.status, "deadline_exceeded");
  const next = await scoreOf(evaluator!, sampleOf({ output: "two words" }));
  assert.equal(next.status, "scored");
});

test("patterns and bounds that make no sense are refused before anything runs", () => {
  for (const options of [
    { pattern: "(" },
    { pattern: "" },
    { pattern: "a", flags: "g" },
    { pattern: "a", flags: "ii" },
    { pattern: "x".repeat(5000) },
  ]) {
    assert.throws(() => evaluatorTable.create([{ name: "regex", options }]), OctavoError);
  }
  assert.throws(
    () => evaluatorTable.create([{ name: "length_between", options: { min: 3, max: 2 } }]),
    /max: expected at least `min`/,
  );
});

test("edit distance agrees with its definition and refuses what is too long", () => {
  const plain = (a: readonly string[], b: readonly string[]): number => {
    let row = Array.from({ length: b.length + 1 }, (_, index) => index);
    for (const [i, character] of a.entries()) {
      const next = [i + 1];
      for (let j = 0; j < b.length; j++) {
        next.push(Math.min(row[j]! + (character === b[j] ? 0 : 1), row[j + 1]! + 1, next[j]! + 1));
      }
      row = next;
    }
    return row[b.length]!;
  };
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "é", "😀"), maxLength: 130 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      const [left, right] = [Array.from(a), Array.from(b)];
      const longest = Math.max(left.length, right.length, 1);
      assert.equal(similarity(a, b), 1 - plain(left, right) / longest);
    }),
    { seed: 7, numRuns: 300 },
  );
  const long = "x".repeat(1_000_000);
  assert.equal(similarity(long, long), 1);
  assert.throws(() => similarity(`a${long}b`, `c${long.replaceAll("x", "y")}d`), /too long to be compared/);
});

test("sentences end at full stops of any script and at line ends", () => {
  assert.deepEqual(sentencesOf("It cost 3.50 euros. Really? Yes!\n- first\n- \n今日は。元気です。"), [
    "It cost 3.50 euros.",
    "Really?",
    "Yes!",
    "- first",
    "今日は。",
    "元気です。",
  ]);
});

test("code blocks are found with their language, closed or not", () => {
  const text = "a\n```TS title\nlet a;\n```\n~~~\n```\n~~~\n````md\n```\n````\n  ```py\nx = 1";
  assert.deepEqual(fencedBlocks(text), [
    { language: "ts", code: "let a;" },
    { language: "", code: "```" },
    { language: "md", code: "```" },
    { language: "py", code: "x = 1" },
  ]);
});
