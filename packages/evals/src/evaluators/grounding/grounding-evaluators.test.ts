import assert from "node:assert/strict";
import test from "node:test";
import { sampleOf, valueOf } from "../testing/sample.js";
import { citationsIn, citedSentences, sourceIds } from "./citations.js";
import { groundingEvaluators } from "./grounding-evaluators.js";

const context =
  '[1] Paris is in France.\n[2] Berlin is in Germany.\nDocument 3: Rome.\n<doc id="kb-7">Oslo</doc>';

test("sources and citations are read in the ways they are written", () => {
  assert.deepEqual([...sourceIds(context)].toSorted(), ["1", "2", "3", "kb-7"]);
  assert.deepEqual(
    citationsIn(
      "a [1, 3-5] b 【2†source】 c [Source kb-7] d [^4] [link text that is far too long to be a citation]",
    ),
    ["1", "3", "4", "5", "2", "kb-7", "4"],
  );
  assert.deepEqual(citationsIn("[1-999999]"), ["1-999999"]);
  assert.deepEqual(
    citedSentences("Paris is in France. [1] Berlin is in Germany [2][3].\nRome is old.").map(
      ({ ids }) => ids,
    ),
    [["1"], ["2", "3"], []],
  );
});

test("coverage counts sentences, validity counts citations", async () => {
  const of = (name: string, output: string, given: string | undefined = context) =>
    valueOf(groundingEvaluators, name, sampleOf({ output, case: { context: given } }));
  const mixed = "Paris is in France [1]. Rome is old. Oslo is cold [kb-7]. Bern is far [9].";
  assert.equal(await of("citation_coverage", mixed), 0.5);
  assert.equal(await of("citation_validity", mixed), 1 - 1 / 3);
  assert.equal(await of("citation_validity", "Nothing."), "skipped");
  assert.equal(await of("citation_coverage", "Paris [1].", "no sources here"), "skipped");
  assert.equal(await of("citation_coverage", "[1]"), "skipped");
  assert.equal(await of("context_word_overlap", "Paris lies near France"), 2 / 4);
  assert.equal(await of("context_word_overlap", "a b"), "skipped");
  assert.equal(await of("citation_coverage", "[".repeat(300_000)), "skipped");
});

test("without a context nothing is scored", async () => {
  for (const { name } of groundingEvaluators) {
    assert.equal(await valueOf(groundingEvaluators, name, sampleOf({ output: "Paris [1]." })), "skipped");
  }
});
