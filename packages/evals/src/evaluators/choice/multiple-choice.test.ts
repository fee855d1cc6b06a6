import assert from "node:assert/strict";
import test from "node:test";
import { sampleOf, valueOf } from "../testing/sample.js";
import { chosenLetter, multipleChoiceEvaluator } from "./multiple-choice.js";

test("the letter is found where models put it", () => {
  for (const [text, letter] of [
    ["B", "B"],
    ["(b)", undefined],
    ["(C).", "C"],
    ["B. Because of the rain", "B"],
    ["Let's think. A is wrong. The answer is (D).", "D"],
    ["**The correct answer is B**, as A fails", "B"],
    ["Answer: H", "H"],
    ["so \\boxed{\\text{E}}", "E"],
    ["It could be (A) or (B), but in the end (C)", "C"],
    ["I would say\nF", "F"],
    ["A dog and I went home", undefined],
    ["The answer is K", undefined],
    ["The answer is Apple", undefined],
    ["", undefined],
  ] as const) {
    assert.equal(chosenLetter(text, 10), letter, text);
  }
  assert.equal(chosenLetter("The answer is (E)", 4), undefined);
  assert.equal(chosenLetter(`${"A ".repeat(500_000)}B`, 10), "B");
  assert.equal(chosenLetter("Answer ".repeat(150_000), 10), undefined);
});

test("a choice is right or wrong, and skipped where the gold is no letter", async () => {
  const of = (output: string, gold: string) =>
    valueOf(
      [multipleChoiceEvaluator],
      "multiple_choice",
      sampleOf({ output, case: { expected: { outputs: [gold] } } }),
    );
  assert.equal(await of("The answer is (B)", "b"), 1);
  assert.equal(await of("The answer is (B)", "(C)"), 0);
  assert.equal(await of("no idea", "C"), 0);
  assert.equal(await of("B", "forty-two"), "skipped");
});
