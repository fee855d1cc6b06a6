import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { defineEvaluator, EvaluatorTable, noOptions } from "./registry.js";
import { evaluatorTable } from "./table.js";
import { sampleOf, scoreOf } from "./testing/sample.js";

const share = defineEvaluator({
  name: "letter_share",
  description: "How much of the output is one letter.",
  inputs: ["output"],
  output: "score",
  passThreshold: 0.75,
  options: z.strictObject({ letter: z.string().length(1).default("a") }),
  create: ({ letter }) => ({
    score: (sample) => {
      const text = sample.answer.text;
      return {
        status: "scored",
        value: text.split(letter).length - 1 === 0 ? 0 : (text.split(letter).length - 1) / text.length,
      };
    },
  }),
});
const broken = defineEvaluator({
  name: "broken",
  description: "Always breaks.",
  inputs: [],
  output: "score",
  options: noOptions,
  create: () => ({
    score: () => {
      throw new OctavoError("judge_failed", "nobody is there");
    },
  }),
});
const wild = defineEvaluator({
  name: "wild",
  description: "Gives what is no score.",
  inputs: [],
  output: "score",
  options: noOptions,
  create: () => ({ score: () => ({ status: "scored", value: Number.NaN }) }),
});
const judged = defineEvaluator({
  name: "judged",
  description: "Asks.",
  inputs: ["output"],
  output: "pass_fail",
  needsJudge: true,
  options: noOptions,
  create: () => ({ score: () => ({ status: "scored", value: 1 }) }),
});
const table = new EvaluatorTable([share, broken, wild, judged]);

function refused(specs: readonly unknown[], message: RegExp): void {
  assert.throws(
    () => table.create(specs),
    (thrown: unknown) =>
      thrown instanceof OctavoError && thrown.code === "invalid_option" && message.test(thrown.message),
  );
}

test("a spec decides the name, the threshold and whether the verdict is turned around", async () => {
  const [own, strict, not] = table.create([
    "letter_share",
    { name: "letter_share", as: "strict", threshold: 0.9 },
    { name: "letter_share", as: "few-a", not: true, threshold: 0.5 },
  ]);
  const sample = sampleOf({ output: "aaaab" });
  const expectations = [
    [own, "letter_share", 0.8, true],
    [strict, "strict", 0.8, false],
    [not, "few-a", 0.2, false],
  ] as const;
  for (const [evaluator, name, value, passed] of expectations) {
    assert.equal(evaluator?.name, name);
    const score = await scoreOf(evaluator, sample);
    assert.ok(score.status === "scored");
    assert.ok(Math.abs(score.value - value) < 1e-12);
    assert.equal(score.passed, passed);
  }
});

test("what goes wrong in a scorer is a failed score, never a value", async () => {
  const scores = await Promise.all(
    table.create(["broken", "wild"]).map((evaluator) => scoreOf(evaluator, sampleOf())),
  );
  assert.deepEqual(
    scores.map((score) => (score.status === "failed" ? score.code : score.status)),
    ["judge_failed", "internal_error"],
  );
});

test("an answer that failed, a case without the tag and a lacking gold are skipped", async () => {
  const [evaluator] = table.create([{ name: "letter_share", tags: ["json"] }]);
  const failure = { code: "timeout", httpStatus: undefined, message: "late" };
  assert.equal((await scoreOf(evaluator!, sampleOf({ case: { tags: ["chat"] } }))).status, "skipped");
  assert.equal(
    (await scoreOf(evaluator!, sampleOf({ case: { tags: ["json"] }, failure }))).status,
    "skipped",
  );
  assert.equal((await scoreOf(evaluator!, sampleOf({ case: { tags: ["json"] } }))).status, "scored");
  const [exact] = evaluatorTable.create(["exact_match"]);
  assert.equal((await scoreOf(exact!, sampleOf({ output: "x" }))).status, "skipped");
});

test("a row is found by a class's spelling of its name", () => {
  assert.equal(evaluatorTable.get("EvaluateFunctionCalling")?.name, "evaluate_function_calling");
  const [evaluator] = evaluatorTable.create([{ name: "IsJSON" }]);
  assert.deepEqual([evaluator?.name, evaluator?.spec?.name], ["is_json", "is_json"]);
  assert.equal(evaluatorTable.get("ExactMatches"), undefined);
});

test("wrong specs are refused with the place and what to do", () => {
  refused(
    [{ name: "leter_share" }],
    /evaluators\[0\].*no evaluator "leter_share"; did you mean letter_share/,
  );
  refused(["letter_share", { name: "letter_share" }], /evaluators\[1\].*another name with `as`/);
  refused([{ name: "letter_share", options: { letter: "ab" } }], /letter_share: letter/);
  refused([{ name: "letter_share", options: { letters: "a" } }], /evaluators\[0\]/);
  refused([{ name: "letter_share", threshold: 2 }], /threshold/);
  refused([{ name: "letter_share", as: "a b" }], /as: expected 1 to 64/);
  refused([17], /evaluators\[0\]/);
  refused(["judged"], /needs a judge/);
});

test("a judged evaluator is made where there is a judge", () => {
  const judge = { name: "judge", ask: () => Promise.reject(new OctavoError("judge_failed", "down")) };
  assert.equal(table.create(["judged"], { judge })[0]?.needsJudge, true);
});

test("two rows of one name are refused", () => {
  assert.throws(() => table.with([share]), /two evaluators are called letter_share/);
});

test("every row of the table names itself in snake_case and says in a sentence what it scores", () => {
  for (const entry of evaluatorTable.entries) {
    assert.match(entry.name, /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
    assert.match(entry.description, /^[A-Z].*\.$/s, entry.name);
    assert.doesNotThrow(() => z.toJSONSchema(entry.options, { io: "input" }), entry.name);
  }
});
