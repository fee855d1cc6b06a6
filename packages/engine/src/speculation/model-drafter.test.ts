import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Program, RowSampling } from "@octavo/kernels";
import {
  collect,
  createFakeEngine,
  eosToken,
  type FixtureOptions,
  generationRequest,
} from "../testing/fakes/engine-fixture.js";
import { FakeBackend, type FakeBackendOptions } from "../testing/fakes/fake-backend.js";
import { draftOf, singleSequence } from "../testing/drafters/draft-fixture.js";
import { type DraftModel, ModelDrafter } from "./model-drafter.js";

const vocabSize = 64;

/** A drafter over a fake model; `numSteps` counts the steps it took. */
function draftModel(
  changes: Partial<DraftModel> = {},
  backendOptions: Partial<FakeBackendOptions> = {},
): { drafter: ModelDrafter; backend: FakeBackend } {
  const backend = new FakeBackend({ vocabSize, ...backendOptions });
  const program: Program = backend.program;
  const drafter = new ModelDrafter({
    backend,
    program,
    kv: { layers: [{ numKvHeads: 1, headDim: 8 }], dtype: "f32" },
    numBlocks: 64,
    blockSize: 4,
    vocabSize,
    targetVocabSize: vocabSize,
    maxModelLen: 256,
    maxNumSeqs: 32,
    maxNumBatchedTokens: 64,
    ...changes,
  });
  return { drafter, backend };
}

const sampled: RowSampling = { temperature: 1, topP: 0.9, topK: 0, minP: 0, seed: 9n, index: 0 };

describe("a draft model", () => {
  test("drafts what the model would generate, computing each token once", async () => {
    const { drafter, backend } = draftModel();
    const reference = draftModel();
    const sequence = singleSequence([1, 2, 3, 4, 5, 6], [7]);
    for (let round = 0; round < 6; round += 1) {
      const steps = backend.numSteps;
      const { tokens } = await draftOf(drafter, sequence, 4, sampled);
      assert.equal(tokens.length, 4);
      assert.equal(backend.numSteps - steps, 4);
      const fresh = singleSequence([1, 2, 3, 4, 5, 6], Array.from(sequence.tokens.slice(6)));
      const again = await draftOf(reference.drafter, fresh, 4, sampled);
      assert.deepEqual(tokens, again.tokens, "a draft does not depend on earlier drafts");
      reference.drafter.release(fresh);
      // All of it comes true, some of it, or nothing; in the end the token behind it by chance too.
      for (const token of tokens.slice(0, round)) sequence.tokens.push(token);
      if (round < 4) sequence.tokens.push((tokens[round] ?? 0) === 20 ? 21 : 20);
    }
    drafter.release(sequence);
    assert.equal(drafter.numUsedBlocks, 0);
    drafter[Symbol.dispose]();
  });

  test("reads a long text over several steps before it drafts", async () => {
    const { drafter, backend } = draftModel({ maxModelLen: 1024, numBlocks: 300, maxNumBatchedTokens: 40 });
    const long = singleSequence(
      Array.from({ length: 100 }, (_, index) => index % 60),
      [3],
    );
    const draftLengths: number[] = [];
    for (let step = 0; step < 4; step += 1)
      draftLengths.push((await draftOf(drafter, long, 2)).tokens.length);
    assert.deepEqual(draftLengths, [0, 0, 2, 2]);
    assert.ok(backend.numSteps <= 2 + 2 + 2);
  });

  test("drafts nothing without blocks, beyond its context, or for tokens it does not know", async () => {
    const full = draftModel({ numBlocks: 3 });
    assert.deepEqual((await draftOf(full.drafter, singleSequence([1, 2, 3, 4, 5], [6]), 4)).tokens.length, 4);
    assert.deepEqual((await draftOf(full.drafter, singleSequence([1, 2], [3]), 4)).tokens, []);
    const short = draftModel({ maxModelLen: 8 });
    assert.equal((await draftOf(short.drafter, singleSequence([1, 2, 3], [4]), 4)).tokens.length, 4);
    assert.deepEqual((await draftOf(short.drafter, singleSequence([1, 2, 3, 4], [5]), 4)).tokens, []);
    const small = draftModel({ vocabSize: 32 });
    assert.deepEqual((await draftOf(small.drafter, singleSequence([1, 40], [3]), 4)).tokens, []);
    const large = draftModel({ targetVocabSize: 4 }, { script: () => 5 });
    assert.deepEqual((await draftOf(large.drafter, singleSequence([1, 2], [3]), 4)).tokens, []);
    const failing = draftModel({}, { rowError: () => "non_finite_logits" });
    assert.deepEqual((await draftOf(failing.drafter, singleSequence([1, 2], [3]), 4)).tokens, []);
  });

  test("changes nothing of what an engine gives, accepted or wrong", async () => {
    const requests = () =>
      Array.from({ length: 6 }, (_, seed) =>
        generationRequest([seed, 2, 3, 4, seed], {
          maxTokens: 30,
          temperature: seed % 2,
          seed: BigInt(seed),
          n: 1 + (seed % 2),
          ignoreEos: false,
          stopTokenIds: [eosToken],
        }),
      );
    const run = async (options: FixtureOptions) => {
      const { engine } = createFakeEngine({
        hooks: { afterStep: (running) => running.checkIntegrity() },
        ...options,
      });
      let accepted = 0;
      let drafted = 0;
      engine.observe({
        onDraft: (draftTokens, acceptedTokens) => {
          drafted += draftTokens;
          accepted += acceptedTokens;
        },
      });
      const results = await Promise.all(requests().map((request) => collect(engine.generate(request))));
      await engine[Symbol.asyncDispose]();
      return { sequences: results.map(({ sequences }) => sequences), accepted, drafted };
    };
    const plain = await run({});
    const scripts: FakeBackendOptions["script"][] = [
      undefined,
      (context) => (context.length % 3 === 0 ? 7 : undefined),
    ];
    for (const script of scripts) {
      for (const numBlocks of [200, 20]) {
        const { drafter } = draftModel({ numBlocks }, script && { script });
        const { sequences, accepted, drafted } = await run({
          speculation: { createDrafter: () => drafter, numSpeculativeTokens: 4, adaptive: false },
        });
        assert.deepEqual(sequences, plain.sequences);
        assert.ok(accepted > 20, `${accepted} of ${drafted}`);
        // The same model with the same random stream samples the same tokens.
        assert.equal(accepted === drafted, script === undefined);
        assert.equal(drafter.numUsedBlocks, 0);
      }
    }
  });
});
