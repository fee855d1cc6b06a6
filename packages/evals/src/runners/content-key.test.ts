import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import type { Sample } from "../evaluators/evaluator.js";
import { evaluatorTable } from "../evaluators/table.js";
import { sampleOf } from "../evaluators/testing/sample.js";
import { ContentKeys } from "./content-key.js";
import { KeyIndex } from "../journal/key-index.js";

const [exact, fuzzy, latency] = evaluatorTable.create([
  "exact_match",
  "fuzzy_match",
  { name: "latency_below", options: { maxMs: 10 } },
]);
const sample = sampleOf({
  output: "text",
  case: { expected: { outputs: ["text"] } },
  toolCalls: [{ name: "f" }],
});

function answered(parts: Partial<Sample["answer"]>): Sample {
  return { ...sample, answer: { ...sample.answer, ...parts } };
}

test("a key depends on the case, the answer and the evaluator, and on nothing else", () => {
  const keys = new ContentKeys();
  const own = keys.of(sample, exact!);
  assert.match(own, /^[0-9a-f]{32}$/);
  const elsewhere = structuredClone(JSON.parse(JSON.stringify(sample))) as Sample;
  const calls = [{ ...sample.answer.toolCalls[0]!, id: "another" }];
  const timing = { ...sample.answer.timing, durationMs: 99 };
  for (const same of [
    elsewhere,
    answered({ toolCalls: calls }),
    answered({ timing, headers: { "x-a": "b" } }),
  ]) {
    assert.equal(new ContentKeys().of(same, exact!), own);
  }
  const others = [
    keys.of(sample, fuzzy!),
    keys.of(sample, evaluatorTable.create([{ name: "exact_match", options: { ignoreCase: true } }])[0]!),
    keys.of(sample, { ...exact!, fingerprint: "a judge" }),
    keys.of(answered({ text: "other" }), exact!),
    keys.of(answered({ reasoning: "" }), exact!),
    keys.of({ ...sample, baseline: sample.answer }, exact!),
    keys.of({ ...sample, case: { ...sample.case, id: "case-2" } }, exact!),
  ];
  assert.equal(new Set([own, ...others]).size, others.length + 1);
});

test("how an answer was served counts for evaluators that read it", () => {
  const keys = new ContentKeys();
  const slow = answered({ timing: { ...sample.answer.timing, durationMs: 99 } });
  assert.notEqual(keys.of(sample, latency!), keys.of(slow, latency!));
});

test("the index finds every key it was given, moved ones where they are now, and no other", () => {
  const index = new KeyIndex();
  const keyOf = (number: number) => createHash("sha256").update(String(number)).digest("hex").slice(0, 32);
  for (let number = 0; number < 20_000; number++) index.set(keyOf(number), number * 2 ** 20);
  index.set(keyOf(7), 0);
  assert.equal(index.size, 20_000);
  for (let number = 0; number < 20_000; number++) {
    assert.equal(index.get(keyOf(number)), number === 7 ? 0 : number * 2 ** 20);
  }
  assert.equal(index.get(keyOf(20_001)), undefined);
});
