import assert from "node:assert/strict";
import test from "node:test";
import { sampleOf, valueOf } from "../testing/sample.js";
import { numericEvaluators } from "./numeric-evaluators.js";
import { quantitiesIn } from "./quantity.js";

const rows: readonly (readonly [
  output: string,
  expected: string,
  options: object,
  value: number | string,
])[] = [
  ["The total is 1,234.50 dollars.", "1234.5", {}, 1],
  ["1 234 567", "1234567", {}, 1],
  ["1'234'567.5", "1234567.5", {}, 1],
  ["1.234,5", "1234,5", { decimal: "," }, 1],
  ["first 3, then 4", "4", {}, 1],
  ["first 3, then 4", "3", {}, 0],
  ["first 3, then 4", "3", { pick: "first" }, 1],
  ["first 3, then 4", "3", { pick: "any" }, 1],
  ["12 apples, so #### 18 (see step 3)", "#### 18", {}, 1],
  ["so \\boxed{-7} by 2", "-7", {}, 1],
  ["The answer is 42, not 41", "42", {}, 1],
  ["\u22125", "-5", {}, 1],
  ["-5", "5", {}, 0],
  ["pages 7-8", "8", {}, 1],
  ["1.5e3", "1500", {}, 1],
  ["3.14159", "3.1416", { absolute: 1e-4 }, 1],
  ["98", "100", { relative: 0.02 }, 1],
  ["97", "100", { relative: 0.02 }, 0],
  ["5000 m", "5 km", {}, 1],
  ["5", "5 km", {}, 1],
  ["5", "5 km", { requireUnit: true }, 0],
  ["5 kg", "5 km", {}, 0],
  ["90 minutes", "1.5 hours", {}, 1],
  ["2 Inches", "5.08 cm", {}, 1],
  ["50%", "50 percent", {}, 1],
  ["50.3 cm", "0.5 m", { absolute: 0.01 }, 1],
  ["no idea", "7", {}, 0],
  ["7", "seven", {}, "skipped"],
];

test("numbers are compared by value, unit and tolerance", async () => {
  for (const [output, expected, options, value] of rows) {
    const sample = sampleOf({ output, case: { expected: { outputs: [expected] } } });
    const spec = { name: "numeric_match", options };
    assert.equal(await valueOf(numericEvaluators, spec, sample), value, `${output} for ${expected}`);
  }
  const given = { name: "numeric_match", options: { value: 3 } };
  assert.equal(await valueOf(numericEvaluators, given, sampleOf({ output: "3" })), 1);
});

test("only numbers that stand by themselves are read", () => {
  assert.deepEqual(
    quantitiesIn("x4 v1.2.3 $5 12,34 1,234 7 mW 7 parsecs", ".").map(({ value, unit }) => [value, unit]),
    [
      [5, undefined],
      [12, undefined],
      [1234, undefined],
      [7, undefined],
      [7, undefined],
    ],
  );
  assert.equal(quantitiesIn("1".repeat(1_000_000), ".").length, 1);
  assert.ok(quantitiesIn("1,".repeat(500_000), ".").length > 0);
});
