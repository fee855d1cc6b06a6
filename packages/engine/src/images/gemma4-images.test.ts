import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  fixtureImage,
  readPatchFixtures,
  readShapedFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { readBudgetProcessing, readGemma4Vision } from "@octavo/artifacts/vision/gemma4-vision";
import { createCpuBackend } from "@octavo/kernels";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { compareGreedy, compareLogits } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { ImageInput } from "./image-input.js";
import { gemma4Reader } from "./image-reader.js";
import { budgetSize, patchOrder } from "./patches.js";
import { prepareImage } from "./prepare-image.js";
import { VisionTower } from "./vision-tower.js";

const bytesOf = (name: string): Uint8Array => readFileSync(fixtureImage(name));

async function openGemma4(name: string) {
  const checkpoint = await openCheckpoint(fixtureImage(name));
  const { vision } = checkpoint.container ?? {};
  assert.ok(vision !== undefined && "tensors" in vision && vision.kind === "gemma4", JSON.stringify(vision));
  return { checkpoint, vision };
}

function farthest(found: Float32Array, expected: Float32Array): number {
  assert.equal(found.length, expected.length);
  return found.reduce((far, value, at) => Math.max(far, Math.abs(value - (expected[at] ?? NaN))), 0);
}

describe("images of Gemma 4, as transformers' processor prepares them", async () => {
  const { vision } = await openGemma4("gemma4");
  const { images, sizes } = readPatchFixtures("gemma4");
  for (const { image, grid, pixels } of images)
    test(image, async () => {
      const { processing, config } = vision;
      const found = await prepareImage({ bytes: bytesOf(image), budgeted: { processing, layout: config } });
      assert.deepEqual([found.grid.rows, found.grid.columns], grid);
      // transformers' go by rows of the image, Octavo's token by token.
      const width = 3 * config.patchSize ** 2;
      const byRows = new Float32Array(found.patches.length);
      for (const [at, position] of patchOrder(found.grid, config.poolSize).entries())
        byRows.set(found.patches.subarray(at * width, (at + 1) * width), position * width);
      const far = farthest(byRows, pixels);
      assert.ok(far <= 1e-3, `pixels differ by ${far}`);
    });

  test("sizes", () => {
    assert.equal(sizes.length, 11);
    for (const [width, height, maxTokens, patchSize, poolSize, wide, high] of sizes)
      assert.deepEqual(
        budgetSize({ width, height }, { ...vision.processing, multiple: patchSize * poolSize, maxTokens }),
        { width: wide, height: high },
        `${width} x ${height}`,
      );
  });
});

for (const name of ["gemma4-small", "gemma4", "gemma4-moe"])
  describe(`${name} against transformers`, async () => {
    const { checkpoint, vision } = await openGemma4(name);
    for (const fixture of readShapedFixtures(name))
      test(`${fixture.images.length} images: ${fixture.images.join(", ")}`, async () => {
        using backend = createCpuBackend({ numThreads: 2 });
        using tower = await VisionTower.load(backend, checkpoint, vision);
        const maxTokens = fixture.prompt.length + fixture.greedy.length;
        using runner = await ModelRunner.load(backend, checkpoint, maxTokens, "f32");
        const input = new ImageInput(gemma4Reader(tower, vision), createTokenizer(checkpoint.tokenizer), 2);
        const placed = await input.place(Int32Array.from(fixture.prompt), fixture.images.map(bytesOf));
        for (const [at, { rows }] of placed.entries()) {
          const expected = fixture.rows[at]!;
          const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
          const far = farthest(rows, expected) / largest;
          assert.ok(far <= 2e-5, `rows of image ${at} differ by ${far}`);
        }
        runner.images = placed;
        await compareLogits(runner, fixture, checkpoint.config.vocabSize, 2e-5);
        await compareGreedy(runner, fixture);
        if (placed.length === 0) return;
        // What per-layer embeddings take for images, and what images see, are seen by the comparison.
        runner.images = placed.map((image) => ({
          ...image,
          ...(name !== "gemma4-small" ? { isCausal: true } : { otherId: 0 }),
        }));
        await assert.rejects(compareLogits(runner, fixture, checkpoint.config.vocabSize, 1e-3), /differ by/);
      });
  });

test("a processor or tower of another kind is refused by name", async () => {
  const { checkpoint, vision } = await openGemma4("gemma4");
  const { image_processor: settings } = JSON.parse(
    readFileSync(fixtureImage("gemma4/processor_config.json"), "utf8"),
  ) as { readonly image_processor: object };
  const processing = (changes: object): unknown =>
    readBudgetProcessing("p.json", { ...settings, ...changes }, vision.config);
  assert.throws(() => processing({ patch_size: 16 }), {
    code: "artifact_invalid",
    message: /16, 3, but .* 2, 3/,
  });
  assert.throws(() => processing({ max_soft_tokens: 71 }), {
    code: "artifact_unsupported",
    message: /71; 70, 140/,
  });
  assert.throws(() => processing({ max_soft_tokens: 140 }), {
    code: "artifact_invalid",
    message: /420 patches/,
  });
  assert.throws(() => processing({ do_resize: false }), { message: /do_resize false/ });
  const config = JSON.parse(readFileSync(fixtureImage("gemma4/config.json"), "utf8")) as {
    readonly vision_config: object;
  };
  const read = (changes: object): unknown =>
    readGemma4Vision(
      "config.json",
      { ...config, vision_config: { ...config.vision_config, ...changes } },
      checkpoint.config,
    );
  const unsupported = (changes: object, message: RegExp): void =>
    assert.throws(() => read(changes), { code: "artifact_unsupported", message });
  unsupported({ model_type: "gemma4_unified_vision" }, /gemma4_unified_vision/);
  unsupported({ hidden_activation: "swish2" }, /swish2/);
  unsupported({ num_key_value_heads: 1 }, /1 vision kv heads for 2 heads/);
  unsupported({ head_dim: 8 }, /2 vision heads of 8 over 32/);
  unsupported({ attention_bias: true }, /attention_bias/);
  unsupported({ rope_parameters: { rope_type: "yarn" } }, /"yarn"/);
});
