import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { z } from "zod";
import { sampleOf, valueOf } from "../testing/sample.js";
import { bleuCounts, corpusBleu, tokenize13a } from "./bleu.js";
import { corpusChrf } from "./chrf.js";
import { overlapEvaluators } from "./overlap-evaluators.js";

const triple = z.tuple([z.number(), z.number(), z.number()]);
const figures = z.object({
  segments: z.array(
    z.object({
      output: z.string(),
      references: z.array(z.string()),
      tokens: z.array(z.string()),
      bleu: z.number(),
      chrf: z.number(),
      chrfPlusPlus: z.number(),
      rouge: z.object({ rouge1: triple, rouge2: triple, rougeL: triple, rougeLsum: triple }),
    }),
  ),
  corpus: z.object({ bleu: z.number(), chrf: z.number(), chrfPlusPlus: z.number() }),
});
/** Written by tools/oracle/make-overlap-fixtures.py from sacreBLEU and rouge-score. */
const { segments, corpus } = figures.parse(
  JSON.parse(readFileSync(new URL("../../../fixtures/overlap.json", import.meta.url), "utf8")),
);

function assertNear(actual: number | string, expected: number, what: string): void {
  assert.ok(
    typeof actual === "number" && Math.abs(actual - expected) < 1e-9,
    `${what}: ${actual} is not ${expected}`,
  );
}

test("tokens are sacreBLEU's", () => {
  for (const { output, tokens } of segments) assert.deepEqual(tokenize13a(output), tokens);
});

test("every score of a segment is that of sacreBLEU or rouge-score", async () => {
  for (const { output, references, bleu, chrf: chrfScore, chrfPlusPlus, rouge } of segments) {
    const sample = sampleOf({ output, case: { expected: { outputs: references } } });
    const expected: readonly (readonly [unknown, number])[] = [
      ["bleu_score", bleu],
      ["chrf_score", chrfScore],
      ["chrf_plus_plus_score", chrfPlusPlus],
      ...(
        [
          ["rouge_1", rouge.rouge1],
          ["rouge_2", rouge.rouge2],
          ["rouge_l", rouge.rougeL],
          ["rouge_lsum", rouge.rougeLsum],
        ] as const
      ).flatMap(
        ([name, [precision, recall, f]]) =>
          [
            [{ name, options: { measure: "precision" } }, precision],
            [{ name, options: { measure: "recall" } }, recall],
            [name, f],
          ] as const,
      ),
    ];
    for (const [spec, value] of expected) {
      assertNear(
        await valueOf(overlapEvaluators, spec, sample),
        value,
        `${JSON.stringify(spec)} of ${JSON.stringify(output)}`,
      );
    }
  }
});

test("scores of the corpus are sacreBLEU's, which are no means of segments", () => {
  assertNear(corpusBleu(segments), corpus.bleu, "BLEU");
  assertNear(corpusChrf(segments), corpus.chrf, "chrF");
  assertNear(corpusChrf(segments, 2), corpus.chrfPlusPlus, "chrF++");
  assert.deepEqual([corpusBleu([]), corpusChrf([])], [0, 0]);
});

test("equal texts score one, and long ones are counted or refused", async () => {
  const text = "a b c d e f ".repeat(20_000);
  const of = (name: string, output: string, reference: string) =>
    valueOf(overlapEvaluators, name, sampleOf({ output, case: { expected: { outputs: [reference] } } }));
  for (const { name } of overlapEvaluators)
    assertNear(await of(name, "one two three four", "one two three four"), 1, name);
  assertNear(await of("bleu_score", text, text), 1, "bleu_score");
  assert.equal(await of("rouge_l", text, text), "failed");
  assert.equal(await of("rouge_lsum", text, text), "failed");
  assert.equal(bleuCounts("\ud800 \udfff", ["\ud800"]).outputLength, 2);
});
