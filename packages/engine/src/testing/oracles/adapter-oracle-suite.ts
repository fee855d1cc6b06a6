import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend } from "@octavo/kernels";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  type AdapterFixture,
  fixtureCheckpoint,
  fixtureGguf,
  fixtureAdapter,
  readAdapterFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { compareChoices, compareGreedy, compareLogits, relativeDifference } from "./model-oracle-suite.js";
import { ModelRunner } from "./model-runner.js";

/** Relative to the largest logit of a row; bf16 kernels may round activations to bf16. */
const tolerances = { f32: 2e-5, bf16: 2e-2 } as const;

/** Compares adapters on a backend with what peft computed from the same files. */
export function adapterOracleSuite(name: string, openBackend: () => Backend): void {
  describe(`adapters on the ${name} backend against peft`, () => {
    const fixtures = readAdapterFixtures();
    for (const fixture of fixtures) {
      test(fixture.name, async () => {
        using backend = openBackend();
        using runner = await open(backend, fixtureCheckpoint(fixture.checkpoint), fixture);
        const isExact = !fixture.name.includes("bf16");
        const tolerance = isExact ? tolerances.f32 : tolerances.bf16;
        await runner.adapt(fixture.path);
        await compareLogits(runner, fixture, vocabSize, tolerance);
        if (isExact) await compareGreedy(runner, fixture);
        else await compareChoices(runner, fixture, tolerance);
      });
    }

    test("adapters and the model itself, one after the other", async () => {
      using backend = openBackend();
      const [first, second] = fixtures.filter(({ checkpoint }) => checkpoint === "llama3");
      assert.ok(first !== undefined && second !== undefined);
      using runner = await open(backend, fixtureCheckpoint("llama3"), first);
      const before = await runner.logits(first.prompt);
      for (const fixture of [first, second, first]) {
        await runner.adapt(fixture.path);
        await compareLogits(runner, fixture, vocabSize, tolerances.f32);
      }
      await runner.adapt(undefined);
      runner.reset();
      assert.deepEqual(await runner.logits(first.prompt), before);
    });

    test("a GGUF file of the llama architecture, whose queries and keys lie in another order", async () => {
      using backend = openBackend();
      const fixture = fixtures.find(({ path }) => path === fixtureAdapter("llama3-all"));
      assert.ok(fixture !== undefined);
      using runner = await open(backend, fixtureGguf("llama3-f32"), fixture);
      await runner.adapt(fixture.path);
      await compareLogits(runner, fixture, vocabSize, 1e-4);
    });

    test("quantised weights: what is added is the same as to unquantised ones", async () => {
      using backend = openBackend();
      const fixture = fixtures.find(({ path }) => path === fixtureAdapter("llama3-all"));
      assert.ok(fixture !== undefined);
      using runner = await open(backend, fixtureGguf("llama3-q8_0"), fixture);
      const plain = (await runner.logits(fixture.prompt)).flatMap((row) => [...row]);
      await runner.adapt(fixture.path);
      runner.reset();
      const rows = (await runner.logits(fixture.prompt)).flatMap((row) => [...row]);
      assert.ok(relativeDifference(rows, fixture.logits) < 0.15, "logits under the adapter");
      assert.ok(relativeDifference(plain, fixture.logits) > 0.5, "the adapter makes a difference");
    });
  });
}

const vocabSize = 272;

async function open(backend: Backend, path: string, fixture: AdapterFixture): Promise<ModelRunner> {
  const maxTokens = fixture.prompt.length + fixture.greedy.length;
  return ModelRunner.load(backend, await openCheckpoint(path), maxTokens, "f32");
}
