import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { smallScreenProblems } from "@octavo/report/testing/small-screen";
import { fileURLToPath } from "node:url";
import { fixtureQuantized } from "@octavo/artifacts/testing/model-fixtures";
import { writeTinyFolder } from "@octavo/artifacts/testing/tiny-checkpoint";
import { OctavoError } from "@octavo/protocol";
import { type ModelComparison, compareModels, renderHtml, renderTable } from "./index.js";
import { writeRoundedModel } from "./testing/rounded-model.js";

const mini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "octavo-compare-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

const city = (name: string) => ({
  messages: [
    { role: "user", content: `What is the weather in ${name}?` },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ type: "function", function: { name: "get_weather", arguments: { city: name } } }],
    },
    { role: "tool", content: '{"temperature": 12}' },
    { role: "assistant", content: `It is 12 degrees in ${name}.` },
  ],
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Look up the weather",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    },
  ],
});
const dataPath = join(scratch, "data.jsonl");
writeFileSync(
  dataPath,
  [
    ...["Oslo", "Bergen", "Paris", "Lima", "Quito", "Rome", "Turin"].map(city),
    {
      messages: [{ role: "user", content: "Give me a list of three fruits as JSON." }],
      gold: '{"fruits": ["apple", "pear", "plum"]}',
    },
    { prompt: "One, two, three, four", completion: ", five, six." },
    { text: "Words upon words, line upon line, until the page is full." },
  ]
    .map((line) => JSON.stringify(line))
    .join("\n"),
);

function rounded(bits: 4 | 8, groupSize: number): string {
  const folder = join(scratch, `int${bits}`);
  mkdirSync(folder, { recursive: true });
  writeRoundedModel(mini, folder, bits, groupSize);
  return folder;
}

const compare = (
  variant: string,
  more: { readonly variantKvCacheDtype?: "int8" } = {},
): Promise<ModelComparison> =>
  compareModels({
    baseline: mini,
    variant,
    dataPath,
    kvCacheDtype: "bf16",
    resamples: 500,
    numThreads: 1,
    ...more,
  });

test("a model against itself is identical, with exactly 0 everywhere", async () => {
  const { verdict, summary, data, worst } = await compare(mini);
  assert.equal(verdict.verdict, "identical");
  for (const cell of [summary.overall, ...summary.byRole, ...summary.byPosition]) {
    assert.equal(cell.kl.value, 0);
    assert.equal(cell.klQuantiles.max, 0);
    assert.equal(cell.numFlips, 0);
    assert.equal(cell.perplexityRatio.value, 1);
  }
  assert.equal(data.conversations, 10);
  assert.equal(data.answers, 17);
  assert.deepEqual(
    summary.byRole.map(({ name }) => name),
    ["prose", "JSON key", "JSON value", "tool argument", "structure"],
  );
  assert.equal(worst.length, 0);
});

test("8 bits are near-lossless; 4 bits diverge far more; both pages stand alone", async () => {
  const eight = await compare(rounded(8, 64));
  assert.equal(eight.verdict.verdict, "near-lossless", eight.verdict.reasons.join(" "));
  const four = await compare(rounded(4, 256));
  assert.ok(["drift", "inconclusive"].includes(four.verdict.verdict), four.verdict.verdict);
  assert.ok(four.summary.overall.kl.value > 10 * eight.summary.overall.kl.value);
  assert.ok(four.variant.weightBytes < eight.variant.weightBytes);
  assert.ok(four.worst.length > 0 && four.worst[0]!.kl >= four.worst.at(-1)!.kl);
  assert.match(renderTable(four), /tool argument/);
  const narrow = renderTable(four, 70).split("\n");
  const begin = narrow.findIndex((line) => line.startsWith("role"));
  const table = narrow.slice(begin, narrow.indexOf("", begin));
  assert.ok(table.length > four.summary.byRole.length);
  assert.ok(
    table.every((line) => line.length <= 70),
    table.join("\n"),
  );
  for (const comparison of [eight, four]) {
    const html = renderHtml(comparison);
    assert.doesNotMatch(
      html,
      /https?:|\bsrc\s*=|<link(?! rel="icon" href="data:,")|<script|@import|url\(|<iframe|<img/i,
    );
    assert.match(html, /^<!doctype html>\n<html lang="en">/);
    assert.match(html, /color-scheme:light dark/);
    assert.equal(html.match(/<svg /g)?.length, html.match(/<\/svg>/g)?.length);
    for (const tag of ["table", "section", "g", "main", "header", "footer", "tr"]) {
      assert.equal(
        html.match(new RegExp(`<${tag}[ >]`, "g"))?.length,
        html.match(new RegExp(`</${tag}>`, "g"))?.length,
        tag,
      );
    }
    assert.ok((html.match(/tabindex="0"/g)?.length ?? 0) > 20);
    assert.ok(!/NaN|undefined|Infinity/.test(html));
  }
  // Names that differ in their last letters alone.
  const alike = ["A", "B"].map((letter) => `models/${"customer-support-assistant-".repeat(3)}${letter}`);
  const named = {
    ...four,
    baseline: { ...four.baseline, model: alike[0]! },
    variant: { ...four.variant, model: alike[1]! },
  };
  assert.deepEqual(await smallScreenProblems(renderHtml(named), alike), []);
  // The same comparison again gives the same figures.
  assert.deepEqual((await compare(rounded(8, 64))).summary, eight.summary);
});

test("a serving choice can be the variant: the KV cache in int8", async () => {
  const { verdict, variant, summary } = await compare(mini, { variantKvCacheDtype: "int8" });
  assert.notEqual(verdict.verdict, "identical");
  assert.equal(variant.kvCacheDtype, "int8");
  assert.ok(
    summary.overall.kl.value > 0 && summary.overall.kl.value < 0.01,
    String(summary.overall.kl.value),
  );
});

test("text from the data is escaped in the page", async () => {
  const comparison = await compare(mini);
  const hostile = '<script>alert("x")</script>\u0000\u202e\u200b';
  const html = renderHtml({
    ...comparison,
    variant: { ...comparison.variant, model: hostile },
    worst: [
      {
        line: 1,
        position: 0,
        role: "prose",
        kl: 1,
        context: hostile,
        target: "</td>",
        baseline: { token: hostile, probability: 0.5 },
        variant: { token: "'\"", probability: 0.5 },
      },
    ],
  });
  assert.ok(!html.includes("<script"));
  assert.doesNotMatch(html, /(?![\t\n])\p{Cc}|\p{Cf}/u);
});

test("FP8 activations that the variant declares are named, and rounded when asked for", async () => {
  const [baseline, variant] = [fixtureQuantized("hqq-8bit"), fixtureQuantized("fp8-tensor")];
  const texts = join(scratch, "texts.jsonl");
  writeFileSync(texts, JSON.stringify({ text: "the cat and the dog sat in the garden" }));
  const run = (asDeclared: boolean): Promise<ModelComparison> =>
    compareModels({ baseline, variant, dataPath: texts, numThreads: 2, resamples: 200, asDeclared });
  const [exact, followed] = [await run(false), await run(true)];
  assert.match(
    renderTable(exact),
    /activations +exact +exact; declared are FP8 activations with a scale per token/,
  );
  assert.match(renderHtml(followed), /FP8 activations with a scale per token/);
  assert.deepEqual(
    [exact.variant.activations?.isFollowed, followed.variant.activations?.isFollowed],
    [false, true],
  );
  assert.notEqual(exact.summary.overall.kl.value, followed.summary.overall.kl.value);
  await assert.rejects(compareModels({ baseline, variant: baseline, dataPath: texts, asDeclared: true }), {
    code: "artifact_unsupported",
  });
});

test("what cannot be compared is refused before weights are loaded", async () => {
  const refuses = (promise: Promise<unknown>, message: RegExp) =>
    assert.rejects(promise, (error) => error instanceof OctavoError && message.test(error.message));
  const other = join(scratch, "other");
  writeTinyFolder(other);
  await refuses(compare(other), /different tokenizers: .* predicts 4096 tokens/);
  const renamed = rounded(8, 64);
  const vocabulary = readFileSync(join(renamed, "tokenizer.json"), "utf8");
  writeFileSync(join(renamed, "tokenizer.json"), vocabulary.replaceAll('"<|im_end|>"', '"<|other|>"'));
  await refuses(
    compare(renamed),
    /different tokenizers: token \d+ is "<\|im_end\|>" in one and "<\|other\|>" in the other/,
  );
  const long = join(scratch, "long.jsonl");
  writeFileSync(
    long,
    `${JSON.stringify({ text: "fine" })}\n${JSON.stringify({ text: "word ".repeat(20_000) })}\n`,
  );
  await refuses(
    compareModels({ baseline: mini, variant: mini, dataPath: long }),
    /long\.jsonl:2 has \d+ tokens; .* takes at most 8191/,
  );
  const tiny = join(scratch, "tiny.jsonl");
  writeFileSync(tiny, '{"text": "a"}');
  await refuses(compareModels({ baseline: mini, variant: mini, dataPath: tiny }), /no token to score/);
  await refuses(
    compareModels({ baseline: mini, variant: mini, dataPath: join(scratch, "none") }),
    /cannot be read/,
  );
});
