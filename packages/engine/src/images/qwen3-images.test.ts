import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import {
  fixtureImage,
  readPatchFixtures,
  readShapedFixtures,
  shapedModels,
} from "@octavo/artifacts/testing/model-fixtures";
import { readShapedProcessing, type ShapedProcessing } from "@octavo/artifacts/vision/image-processing";
import { layerSpans, readQwen25Vision } from "@octavo/artifacts/vision/qwen25-vision";
import { readQwen3Vision } from "@octavo/artifacts/vision/qwen3-vision";
import { createCpuBackend } from "@octavo/kernels";
import { compareGreedy, compareLogits } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { decodeImage } from "./decode-image.js";
import { cut, pixelsOf, shapedSize } from "./patches.js";
import { isShaped, loadShapedTower, seeingDecoder } from "./load-images.js";
import { Qwen3Tower } from "./qwen3-tower.js";

async function openSeeing(model: string) {
  const opened = await openCheckpoint(fixtureImage(model));
  const { vision: sight } = opened.container ?? {};
  assert.ok(sight !== undefined && "tensors" in sight && isShaped(sight), JSON.stringify(sight));
  return { checkpoint: opened, vision: sight };
}

const { checkpoint, vision } = await openSeeing("qwen3-vl");
assert.ok(vision.kind === "qwen3-vl");

async function prepared(name: string, others: Partial<ShapedProcessing> = {}) {
  const { config } = vision;
  const processing = { ...vision.processing, ...others };
  const image = await decodeImage(readFileSync(fixtureImage(name)));
  const size = shapedSize(image, processing);
  const grid = { rows: size.height / config.patchSize, columns: size.width / config.patchSize };
  return { grid, patches: cut(pixelsOf(image, { ...processing, ...size }), grid, config) };
}

function farthest(found: Float32Array, expected: Float32Array): number {
  assert.equal(found.length, expected.length);
  return found.reduce((far, value, at) => Math.max(far, Math.abs(value - (expected[at] ?? NaN))), 0);
}

describe("images of Qwen3-VL, as transformers' processor prepares them", () => {
  for (const { image, grid, pixels } of readPatchFixtures("qwen3-vl").images)
    test(image, async () => {
      const found = await prepared(image);
      assert.deepEqual([1, found.grid.rows, found.grid.columns], grid);
      const far = farthest(found.patches, pixels);
      assert.ok(far <= 1e-3, `pixels differ by ${far}`);
    });
});

for (const model of shapedModels)
  describe(`${model} against transformers`, () => {
    for (const fixture of readShapedFixtures(model))
      test(`${fixture.images.length} images: ${fixture.images.join(", ")}`, async () => {
        const { checkpoint: opened, vision: sight } = await openSeeing(model);
        using backend = createCpuBackend({ numThreads: 2 });
        using tower = await loadShapedTower(backend, opened, sight);
        const config = seeingDecoder(opened.config, sight);
        const maxTokens = fixture.prompt.length + fixture.greedy.length;
        using runner = await ModelRunner.load(backend, { ...opened, config }, maxTokens, "f32");
        let from = 0;
        const placed = [];
        for (const [at, name] of fixture.images.entries()) {
          const { patches, grid } = await prepared(name);
          const seen = await tower.see(patches, grid);
          const all = Float32Array.from([...seen.rows, ...seen.added]);
          const expected = fixture.rows[at]!;
          const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
          const far = farthest(all, expected) / largest;
          assert.ok(far <= 2e-5, `rows of ${name} differ by ${far}`);
          const start = fixture.prompt.indexOf(sight.config.imageTokenId, from);
          const numTokens = seen.grid.rows * seen.grid.columns;
          placed.push({ ...seen, start, numTokens, digest: new Int32Array(8) });
          from = start + numTokens;
        }
        runner.images = placed;
        await compareLogits(runner, fixture, config.vocabSize, 2e-5);
        await compareGreedy(runner, fixture);
      });
  });

test("an image of more tokens than the usual bound is seen as transformers sees it", async () => {
  const { image, size, grid, every, ...large } = JSON.parse(
    readFileSync(fixtureImage("qwen3-vl-large.json"), "utf8"),
  ) as {
    readonly image: string;
    readonly size: { readonly shortest_edge: number; readonly longest_edge: number };
    readonly grid: readonly number[];
    readonly every: number;
    readonly rows: string;
  };
  const expected = new Float32Array(new Uint8Array(readFileSync(fixtureImage(large.rows))).buffer);
  const bounds = { minPixels: size.shortest_edge, maxPixels: size.longest_edge };
  const { patches, grid: found } = await prepared(image, bounds);
  assert.deepEqual([1, found.rows, found.columns], grid);
  using backend = createCpuBackend({ numThreads: 2 });
  const part = { ...vision, processing: { ...vision.processing, maxPixels: 16 * 16 * 1500 } };
  using tower = await Qwen3Tower.load(backend, checkpoint, part);
  const seen = await tower.see(patches, found);
  const width = vision.config.outSize;
  const numTokens = seen.rows.length / width;
  assert.ok(numTokens > 1_400, `${numTokens} tokens`);
  const all = Float32Array.from([...seen.rows, ...seen.added]);
  const kept = Float32Array.from(
    Array.from({ length: all.length / width }, (_, row) => row)
      .filter((row) => (row % numTokens) % every === 0)
      .flatMap((row) => [...all.subarray(row * width, (row + 1) * width)]),
  );
  const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const far = farthest(kept, expected) / largest;
  assert.ok(far <= 2e-5, `rows differ by ${far}`);
});

test("sizes are those of transformers' smart_resize", () => {
  // width, height, multiple, least and most pixels: width, height
  const cases = [
    [400, 3, 16, 1024, 4096, 384, 16],
    [3, 400, 16, 1024, 4096, 16, 384],
    [1, 1, 16, 1024, 4096, 32, 32],
    [640, 480, 32, 65536, 16777216, 640, 480],
    [48, 48, 32, 65536, 16777216, 256, 256],
    [4000, 3000, 32, 65536, 1048576, 1152, 864],
    [80, 112, 32, 1024, 1048576, 64, 128],
    [16, 48, 32, 1024, 1048576, 32, 64],
    [5000, 30, 32, 65536, 1048576, 4992, 32],
    [333, 777, 28, 3136, 1003520, 336, 784],
    [1999, 10, 32, 65536, 1048576, 3648, 32],
  ] as const;
  for (const [width, height, multiple, minPixels, maxPixels, wide, high] of cases)
    assert.deepEqual(
      shapedSize({ width, height }, { ...vision.processing, multiple, minPixels, maxPixels }),
      { width: wide, height: high },
      `${width} x ${height}`,
    );
  const long = { width: 201, height: 1 };
  assert.throws(() => shapedSize(long, vision.processing), { code: "invalid_request", message: /too long/ });
});

for (const model of ["qwen2-5-vl", "qwen3-vl"])
  test(`${model}: long and thin images, the most patches there are, run`, async () => {
    using backend = createCpuBackend({ numThreads: 2 });
    const opened = await openSeeing(model);
    using tower = await loadShapedTower(backend, opened.checkpoint, opened.vision);
    for (const [width, height] of [
      [400, 3],
      [200, 1],
      [3200, 16],
    ] as const) {
      const size = shapedSize({ width, height }, vision.processing);
      const grid = { rows: size.height / 8, columns: size.width / 8 };
      const seen = await tower.see(new Float32Array(grid.rows * grid.columns * 384), grid);
      assert.equal(seen.rows.length, (grid.rows * grid.columns * 64) / 4);
    }
  });

test("a processor or tower of another kind is refused by name", () => {
  const tower = { patchSize: 8, poolSize: 2, moments: 2 };
  const settings = { patch_size: 8, size: { shortest_edge: 1024, longest_edge: 4096 } };
  const processing = (changes: object): unknown =>
    readShapedProcessing("p.json", { ...settings, ...changes }, tower);
  assert.throws(() => processing({ patch_size: 14 }), { code: "artifact_invalid", message: /14, 2, 2/ });
  assert.throws(() => processing({ min_pixels: 9999 }), {
    code: "artifact_unsupported",
    message: /9999 to 4096/,
  });
  assert.throws(() => processing({ do_resize: false }), { message: /do_resize false/ });
  const config = JSON.parse(readFileSync(fixtureImage("qwen3-vl/config.json"), "utf8")) as {
    readonly vision_config: object;
  };
  const read = (changes: object): unknown =>
    readQwen3Vision(
      "config.json",
      { ...config, vision_config: { ...config.vision_config, ...changes } },
      checkpoint.config,
    );
  assert.throws(() => read({ hidden_act: "swish2" }), { code: "artifact_unsupported", message: /swish2/ });
  assert.throws(() => read({ num_heads: 3 }), { code: "artifact_invalid", message: /3 vision heads/ });
  assert.throws(() => read({ out_hidden_size: 32 }), { message: /sees 32 columns and reads 64/ });
  assert.throws(() => read({ num_position_embeddings: 26 }), { message: /26 positions/ });
  assert.throws(() => read({ deepstack_visual_indexes: [1, 1] }), { message: /taps the vision layers 1, 1/ });
  assert.throws(() => read({ deepstack_visual_indexes: [3] }), { message: /taps the vision layers 3 of 3/ });
});

test("what a config leaves out is what transformers takes for granted of its model", () => {
  const config = JSON.parse(readFileSync(fixtureImage("qwen3-vl/config.json"), "utf8")) as {
    readonly vision_config: object;
    readonly text_config: object;
  };
  const read = (container: string) => {
    const given = {
      architectures: [container],
      vision_config: config.vision_config,
      text_config: { ...config.text_config, rope_scaling: null },
    };
    return readQwen3Vision("config.json", given, { ...checkpoint.config, vocabSize: 250_000 });
  };
  for (const container of ["Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"]) {
    const { imageTokenId, beginTokenId, endTokenId, ropeSections, tappedLayers } = read(container);
    assert.deepEqual([imageTokenId, beginTokenId, endTokenId], [151_655, 151_652, 151_653]);
    assert.deepEqual(
      [ropeSections, tappedLayers],
      [
        [24, 20, 20],
        [0, 1],
      ],
    );
  }
  for (const container of ["Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"]) {
    const { imageTokenId, beginTokenId, endTokenId, ropeSections, tappedLayers } = read(container);
    assert.deepEqual([imageTokenId, beginTokenId, endTokenId], [248_056, 248_053, 248_054]);
    // its tower has no DeepStack, whatever the file says
    assert.deepEqual([ropeSections, tappedLayers], [[11, 11, 10], []]);
  }
  assert.throws(() => read("Qwen2VLForConditionalGeneration"), { code: "artifact_invalid" });
});

test("Qwen2.5-VL's config.json, as published and as saved anew, and what it cannot say", async () => {
  const { checkpoint: opened } = await openSeeing("qwen2-5-vl");
  const { text_config: within, ...config } = JSON.parse(
    readFileSync(fixtureImage("qwen2-5-vl/config.json"), "utf8"),
  ) as Readonly<Record<"vision_config" | "text_config", Readonly<Record<string, unknown>>>>;
  const read = (changes: object, whole: object = { ...config, text_config: within }) =>
    readQwen25Vision(
      "config.json",
      { ...whole, vision_config: { ...config.vision_config, ...changes } },
      opened.config,
    );
  const expected = read({});
  assert.deepEqual(read({}, { ...config, ...within }), expected);
  assert.deepEqual(read({ in_channels: undefined, in_chans: 3 }), expected);
  assert.deepEqual(layerSpans(expected), [
    { first: 0, end: 2, seesWhole: false },
    { first: 2, end: 3, seesWhole: true },
    { first: 3, end: 4, seesWhole: false },
  ]);
  assert.throws(() => read({ hidden_act: "gelu" }), { code: "artifact_unsupported", message: /"gelu"/ });
  assert.throws(() => read({ in_chans: 1, in_channels: null }), { message: /images of 1 channels/ });
  assert.throws(() => read({ num_heads: 3 }), { code: "artifact_invalid", message: /3 vision heads/ });
  assert.throws(() => read({ window_size: 8 }), { code: "artifact_invalid", message: /windows of 8 pixels/ });
  assert.throws(() => read({ out_hidden_size: 32 }), { message: /sees 32 columns and reads 64/ });
  const rope_scaling = { type: "mrope", mrope_section: [16, 24, 24] };
  assert.throws(() => read({}, { ...config, text_config: { ...within, rope_scaling } }), {
    message: /64 pairs over 8/,
  });
});
