import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { z } from "zod";
import { schemaCheck } from "./json/schema-validator.js";
import { overlapEvaluators } from "./overlap/overlap-evaluators.js";
import { rankingEvaluator } from "./ranking/ranking-evaluator.js";
import { sampleOf, valueOf } from "./testing/sample.js";
import { textEvaluators } from "./text/text-evaluators.js";

const triple = z.tuple([z.number(), z.number(), z.number()]);
const textRows = z.array(
  z.object({
    output: z.string(),
    references: z.array(z.string()),
    bleu: z.number(),
    chrf: z.number(),
    chrfPlusPlus: z.number(),
    rouge: z.object({ rouge1: triple, rouge2: triple, rougeL: triple, rougeLsum: triple }),
    levenshtein: z.number(),
    ratio: z.number(),
    wer: z.number().nullable(),
  }),
);
const schemaRows = z.array(
  z.object({
    schema: z.record(z.string(), z.unknown()),
    values: z.array(z.tuple([z.unknown(), z.boolean()])),
  }),
);

/** Written by tools/oracle/make-unicode-text-fixtures.py. */
function fixture<T>(name: string, schema: z.ZodType<T>): T {
  return schema.parse(JSON.parse(readFileSync(new URL(`../../fixtures/${name}`, import.meta.url), "utf8")));
}

test("text metrics of random Unicode are those of sacrebleu, rouge-score, rapidfuzz and jiwer", async () => {
  const rows = [...overlapEvaluators, ...textEvaluators];
  const wrong: string[] = [];
  for (const [index, row] of fixture("unicode-text.json", textRows).entries()) {
    const [first] = row.references;
    const expected: readonly (readonly [unknown, number])[] = [
      ["bleu_score", row.bleu],
      ["chrf_score", row.chrf],
      ["chrf_plus_plus_score", row.chrfPlusPlus],
      ["rouge_1", row.rouge.rouge1[2]],
      ["rouge_2", row.rouge.rouge2[2]],
      ["rouge_l", row.rouge.rougeL[2]],
      ["rouge_lsum", row.rouge.rougeLsum[2]],
      [{ name: "fuzzy_match", options: { value: first } }, row.levenshtein],
      [{ name: "fuzzy_match", options: { value: first, rule: "indel" } }, row.ratio],
      ...(row.wer === null
        ? []
        : ([[{ name: "word_accuracy", options: { value: first } }, Math.max(0, 1 - row.wer)]] as const)),
    ];
    const sample = sampleOf({ output: row.output, case: { expected: { outputs: row.references } } });
    for (const [spec, value] of expected) {
      const own = await valueOf(rows, spec, sample);
      if (typeof own !== "number" || Math.abs(own - value) > 1e-9)
        wrong.push(`row ${index}, ${JSON.stringify(spec).slice(0, 60)}: ${own} is not ${value}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("rankings score as scikit-learn scores them, as JSON and as a list", async () => {
  const rows = z.array(
    z.object({
      ranked: z.array(z.string()),
      relevant: z.array(z.string()),
      k: z.number(),
      ndcg: z.number(),
      averagePrecision: z.number(),
      reciprocalRank: z.number(),
    }),
  );
  for (const { ranked, relevant, k, ...figures } of fixture("rankings.json", rows))
    for (const output of [
      JSON.stringify(ranked),
      ranked.map((item, index) => `${index + 1}. ${item}`).join("\n"),
    ])
      for (const [options, value] of [
        [{ k }, figures.ndcg],
        [{ measure: "average_precision" }, figures.averagePrecision],
        [{ measure: "reciprocal_rank" }, figures.reciprocalRank],
      ] as const) {
        const sample = sampleOf({ output, case: { expected: { outputs: relevant } } });
        const own = await valueOf([rankingEvaluator], { name: "ranking", options }, sample);
        assert.ok(typeof own === "number" && Math.abs(own - value) < 1e-9, `${output}: ${own}, not ${value}`);
      }
});

test("readability is textstat's, in any script", async () => {
  const rows = z.array(
    z.object({ text: z.string(), ari: z.number(), coleman_liau: z.number(), lix: z.number() }),
  );
  const read = fixture("readability.json", rows);
  assert.ok(read.length > 40);
  for (const { text, ...figures } of read)
    for (const [formula, value] of Object.entries(figures)) {
      const spec = { name: "readability", options: { formula, min: value - 1e-9, max: value + 1e-9 } };
      assert.equal(
        await valueOf(textEvaluators, spec, sampleOf({ output: text })),
        1,
        `${formula} of ${text}`,
      );
    }
});

test("random schemas accept and refuse what python-jsonschema does", () => {
  const wrong: string[] = [];
  for (const { schema, values } of fixture("json-schemas.json", schemaRows)) {
    const check = schemaCheck(schema);
    for (const [value, isValid] of values) {
      if ((check(value) === undefined) !== isValid)
        wrong.push(`${JSON.stringify(schema)} and ${JSON.stringify(value)}: ${isValid}`);
    }
  }
  assert.deepEqual(wrong, []);
});
