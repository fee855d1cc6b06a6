import { describe, test } from "node:test";
import type { Backend } from "@octavo/kernels";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { readQuantizedFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { compareChoices, compareGreedy, compareLogits } from "./model-oracle-suite.js";
import { ModelRunner } from "./model-runner.js";

/**
 * Compares every quantisation scheme on a backend with transformers on the dequantised weights. The reference backend uses the
 * dequantised values themselves, so there only the order of summation differs; kernels also quantise activations.
 */
export function quantizedOracleSuite(name: string, openBackend: () => Backend, tolerance: number): void {
  describe(`quantised checkpoints on the ${name} backend against transformers on the dequantised weights`, () => {
    for (const fixture of readQuantizedFixtures()) {
      test(fixture.name, async () => {
        using backend = openBackend();
        const checkpoint = await openCheckpoint(fixture.path);
        const maxTokens = fixture.prompt.length + fixture.greedy.length;
        using runner = await ModelRunner.load(backend, checkpoint, maxTokens, "f32");
        await compareLogits(runner, fixture, checkpoint.config.vocabSize, tolerance);
        if (tolerance < 1e-3) await compareGreedy(runner, fixture);
        else await compareChoices(runner, fixture, tolerance);
      });
    }
  });
}
