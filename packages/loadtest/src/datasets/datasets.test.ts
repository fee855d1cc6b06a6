import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { LoadCase } from "./dataset.js";
import { fileDataset } from "./file.js";
import { syntheticDataset } from "./synthetic.js";
import { traceDataset } from "./trace.js";

const synthetic = {
  seed: 4,
  inputTokens: 40,
  outputTokens: 10,
  rangeRatio: 0.5,
  tokensPerWord: 2,
  ignoreEos: true,
};
const traced = {
  path: "t",
  seed: 1,
  tokensPerWord: 1,
  ignoreEos: true,
  maxInputTokens: 4096,
  maxOutputTokens: 64,
};
function wordsOf(item: LoadCase | undefined): readonly string[] {
  assert.ok(typeof item?.prompt === "string");
  return item.prompt.split(" ");
}

test("random prompts have the wanted lengths, differ, and repeat with the seed", () => {
  const cases = syntheticDataset(synthetic).cases(50);
  assert.deepEqual(cases, syntheticDataset(synthetic).cases(50));
  assert.equal(new Set(cases.map((item) => item.prompt)).size, 50);
  for (const item of cases) {
    assert.ok(wordsOf(item).length >= 10 && wordsOf(item).length <= 30, String(wordsOf(item).length));
    assert.ok(item.maxTokens >= 5 && item.maxTokens <= 15);
  }
});

test("shared-prefix prompts begin with one of the prefixes and go on differently", () => {
  const cases = syntheticDataset({ ...synthetic, prefixTokens: 60, numPrefixes: 2 }).cases(40);
  const heads = new Set(cases.map((item) => wordsOf(item).slice(0, 30).join(" ")));
  assert.equal(heads.size, 2);
  assert.equal(new Set(cases.map((item) => item.prompt)).size, 40);
});

test("files hold prompts, chats or ShareGPT conversations", () => {
  const content = [
    '{"prompt": "one", "max_tokens": 7}',
    '{"messages": [{"role": "user", "content": "two"}]}',
    "",
    '{"conversations": [{"from": "human", "value": "three"}, {"from": "gpt", "value": "x"}]}',
  ].join("\n");
  const cases = fileDataset(content, { path: "f", outputTokens: 5, ignoreEos: false }).cases(4);
  assert.deepEqual(
    cases.map((item) => [item.prompt, item.maxTokens]),
    [
      ["one", 7],
      [[{ role: "user", content: "two" }], 5],
      ["three", 5],
      ["one", 7],
    ],
  );
  for (const wrong of ["{", '{"text": 1}', ""]) {
    assert.throws(() => fileDataset(wrong, { path: "f", outputTokens: 5, ignoreEos: false }), OctavoError);
  }
});

test("Mooncake rows share text where their hash ids agree", () => {
  const content = [
    '{"timestamp": 1000, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 3]}',
    '{"timestamp": 1500, "input_length": 1030, "output_length": 500, "hash_ids": [1, 2, 9]}',
  ].join("\n");
  const trace = traceDataset(content, { ...traced, format: "mooncake" });
  const [first, second] = trace.cases(2);
  const head = (item: LoadCase | undefined) => wordsOf(item).slice(0, 1024).join(" ");
  assert.equal(head(first), head(second));
  assert.notEqual(first?.prompt, second?.prompt);
  assert.deepEqual([first?.atMs, second?.atMs], [0, 500]);
  assert.equal(wordsOf(first).length, 1100);
  assert.equal(second?.maxTokens, 64);
  assert.equal(trace.clipped, 1);
});

test("BurstGPT and Azure tables give times and lengths", () => {
  const burst = traceDataset(
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,10,0,10,x\n",
    { ...traced, format: "burstgpt" },
  );
  assert.deepEqual(
    burst.cases(1).map((item) => [wordsOf(item).length, item.maxTokens, item.atMs]),
    [[472, 18, 0]],
  );
  const azure = traceDataset(
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,12,4\n2023-11-16 18:17:04.0319600,3,2\n",
    { ...traced, format: "azure" },
  ).cases(2);
  assert.ok(Math.abs((azure[1]?.atMs ?? 0) - 52) < 1e-6);
  assert.throws(() => burst.cases(5), /2 were|5 were asked/);
});

test("a trace that is not what it says names the line", () => {
  const wrong: readonly (readonly ["mooncake" | "azure", string])[] = [
    ["mooncake", '{"timestamp": 1}'],
    ["mooncake", "x"],
    ["azure", "a,b\n1,2"],
    ["azure", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2"],
  ];
  for (const [format, content] of wrong) {
    assert.throws(() => traceDataset(content, { ...traced, format }), /t:\d/);
  }
});
