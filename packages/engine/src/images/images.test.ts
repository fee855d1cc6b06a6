import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { fixtureImage, readImageFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { createCpuBackend } from "@octavo/kernels";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { compareGreedy, compareLogits } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { ImageInput } from "./image-input.js";
import { siglipReader } from "./image-reader.js";
import { VisionTower } from "./vision-tower.js";

const bytesOf = (name: string): Uint8Array => readFileSync(fixtureImage(name));

describe("prompts with images, against transformers", () => {
  for (const fixture of readImageFixtures()) {
    test(fixture.images.join(", "), async () => {
      const checkpoint = await openCheckpoint(fixtureImage("gemma3"));
      const vision = checkpoint.container?.vision;
      assert.ok(vision !== undefined && "tensors" in vision && vision.kind === "siglip");
      using backend = createCpuBackend({ numThreads: 2 });
      const maxTokens = fixture.prompt.length + fixture.greedy.length;
      using runner = await ModelRunner.load(backend, checkpoint, maxTokens, "f32");
      using tower = await VisionTower.load(backend, checkpoint, vision);
      const input = new ImageInput(siglipReader(tower, vision), createTokenizer(checkpoint.tokenizer), 2);
      runner.images = await input.place(Int32Array.from(fixture.prompt), fixture.images.map(bytesOf));
      await compareLogits(runner, fixture, checkpoint.config.vocabSize, 2e-5);
      await compareGreedy(runner, fixture);
      runner.images = [];
      await assert.rejects(compareLogits(runner, fixture, checkpoint.config.vocabSize, 1e-2), /differ by/);
    });
  }
});
