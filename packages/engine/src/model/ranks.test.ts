import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createCpuBackend } from "@octavo/kernels";
import { createRankedBackend } from "@octavo/kernels/ranked-backend";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  ChangedCheckpoint,
  fixtureCheckpoint,
  readGgufFixtures,
  readModelFixtures,
  readQuantizedFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { assertSameAnswers } from "../testing/oracles/same-answers.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";

const MAX_TOKENS = 400;

async function compare(
  checkpoint: Checkpoint,
  prompt: readonly number[],
  { numRanks = 2, numThreads = 2 } = {},
): Promise<void> {
  using alone = createCpuBackend({ numThreads: 1 });
  using ranks = createRankedBackend({ numRanks, numThreads });
  using expected = await ModelRunner.load(alone, checkpoint, MAX_TOKENS, "f32");
  using actual = await ModelRunner.load(ranks, checkpoint, MAX_TOKENS, "f32");
  await assertSameAnswers(actual, expected, prompt);
}

/** Latent attention is refused, since its cache has no heads to divide. */
async function compareOrRefuse(checkpoint: Checkpoint, prompt: readonly number[]): Promise<void> {
  if (checkpoint.config.latent === undefined) return compare(checkpoint, prompt);
  await assert.rejects(compare(checkpoint, prompt), {
    code: "invalid_option",
    param: "tensor_parallel_size",
    message:
      "tensor_parallel_size is 2, but the model has latent attention, whose cache cannot be divided by heads.",
  });
}

describe("ranks give the bits of one", () => {
  for (const fixture of readModelFixtures()) {
    test(fixture.name, async () => {
      using folder = new ChangedCheckpoint(fixture.checkpoint, fixture.config);
      await compareOrRefuse(await openCheckpoint(folder.path), fixture.long.prompt.slice(0, 90));
    });
  }
  for (const fixture of readGgufFixtures()) {
    test(`${fixture.name}.gguf`, async () => {
      await compareOrRefuse(await openCheckpoint(fixture.path), fixture.prompt);
    });
  }
  for (const fixture of readQuantizedFixtures()) {
    test(`quantised ${fixture.name}`, async () => {
      await compare(await openCheckpoint(fixture.path), fixture.prompt);
    });
  }
});

test("four ranks, and ranks of several threads", async () => {
  const checkpoint = await openCheckpoint(fixtureCheckpoint("llama3"));
  const prompt = Array.from({ length: 40 }, (_, index) => index + 1);
  await compare(checkpoint, prompt, { numThreads: 4 });
  const { numKvHeads, numHeads } = checkpoint.config;
  if (numKvHeads % 4 === 0) return compare(checkpoint, prompt, { numRanks: 4, numThreads: 4 });
  await assert.rejects(compare(checkpoint, prompt, { numRanks: 4, numThreads: 4 }), {
    code: "invalid_option",
    param: "tensor_parallel_size",
    message: `tensor_parallel_size is 4, which does not divide the model's ${numHeads % 4 === 0 ? `${numKvHeads} heads of keys and values` : `${numHeads} attention heads`}.`,
  });
});

test("a rank that cannot go on ends the step for all; the next step is refused too", async () => {
  using backend = createRankedBackend({ numRanks: 2, numThreads: 2 });
  const checkpoint = await openCheckpoint(fixtureCheckpoint("llama3"));
  using runner = await ModelRunner.load(backend, checkpoint, MAX_TOKENS, "f32");
  await runner.logits([1, 2, 3]);
  backend.ranks?.[1]?.[Symbol.dispose]();
  for (let step = 0; step < 2; step++) await assert.rejects(runner.logits([4]), /has been disposed/);
});
