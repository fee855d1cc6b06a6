import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { LLM, openCheckpoint } from "@octavo/engine";
import { dequantize } from "@octavo/artifacts/testing/dequantize";
import { defaultModelFolder, modelFile } from "./model-file.js";
import { fileTypes, tensorType } from "./quantisation-mix.js";
import { randomTensor } from "./random-blocks.js";
import { modelShapes } from "./shapes.js";
import { multiplyAddsPerToken, modelTensors, type TensorSpec, matrixBytes } from "./tensors.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-bench-"));
after(() => rmSync(folder, { recursive: true }));

describe("generated model files", () => {
  for (const type of fileTypes) {
    test(`tiny ${type} loads, answers, and does not repeat itself`, async () => {
      const model = modelFile(folder, "tiny", type);
      const checkpoint = await openCheckpoint(model.path);
      assert.equal(checkpoint.config.vocabSize, 1024);
      await using llm = await LLM.load(model.path, { maxModelLen: 128, numThreads: 1 });
      const prompt = Int32Array.from({ length: 32 }, (_, index) => (index * 37) % 1000);
      const { sequences } = await llm.generate(prompt, { temperature: 0, maxTokens: 48, ignoreEos: true });
      const distinct = new Set(sequences[0]?.tokens);
      assert.ok(distinct.size >= 8, `only ${[...distinct].join(", ")}`);
    });
  }

  test("a file that is there is taken as it is", () => {
    const { path } = modelFile(folder, "tiny", "q4_0");
    const { mtimeMs } = statSync(path);
    modelFile(folder, "tiny", "q4_0", () => assert.fail("written again"));
    assert.equal(statSync(path).mtimeMs, mtimeMs);
    assert.ok(readdirSync(folder).every((name) => !name.endsWith(".new")));
  });

  test("the folder follows the environment", () => {
    assert.equal(defaultModelFolder({ OCTAVO_BENCH_MODELS: "/somewhere" }), "/somewhere");
    assert.equal(defaultModelFolder({ XDG_CACHE_HOME: "/cache" }), "/cache/octavo/bench-models");
  });
});

describe("quantisation mixes", () => {
  const llama = modelShapes["llama-3.2-1b"];
  const qwen = modelShapes["qwen2.5-0.5b"];

  test("Q4_K_M keeps half of the value and down projections in Q6_K", () => {
    const downs = Array.from({ length: 16 }, (_, layer) =>
      tensorType("q4_k_m", "ffn_down", layer, 8192, llama),
    );
    assert.deepEqual(
      downs.flatMap((type, layer) => (type === "q6_k" ? [layer] : [])),
      [0, 1, 4, 7, 10, 13, 14, 15],
    );
    assert.equal(tensorType("q4_k_m", "weight", 0, 2048, llama), "q4_k");
  });

  test("rows that 256 does not divide fall back", () => {
    assert.equal(tensorType("q4_k_m", "weight", 5, 896, qwen), "q5_0");
    assert.equal(tensorType("q4_k_m", "attn_v", 0, 896, qwen), "q8_0");
    assert.equal(tensorType("q4_k_m", "ffn_down", 0, 4864, qwen), "q6_k");
    assert.equal(tensorType("q4_0", "embedding", 0, 896, qwen), "q8_0");
    assert.equal(tensorType("q4_0", "embedding", 0, 2048, llama), "q6_k");
  });

  test("sizes are those of the published files", () => {
    // Llama-3.2-1B-Instruct-Q4_0.gguf and -Q8_0.gguf hold 771 MB and 1,319 MB, a few MB of it vocabulary.
    assert.equal(Math.round(matrixBytes(modelTensors(llama, "q4_0")) / 1e6), 763);
    assert.equal(Math.round(matrixBytes(modelTensors(llama, "q8_0")) / 1e6), 1313);
    assert.equal(Math.round(multiplyAddsPerToken(modelTensors(llama, "bf16")) / 1e6), 973);
  });
});

describe("random blocks", () => {
  const rows = 64;
  const columns = 1024;
  for (const type of ["q4_0", "q5_0", "q8_0", "q4_k", "q6_k", "bf16", "f32"] as const) {
    test(`${type} has the deviation asked for and no mean`, () => {
      const shape = type === "f32" ? [rows * columns] : [rows, columns];
      const byteLength = {
        q4_0: 36_864,
        q5_0: 45_056,
        q8_0: 69_632,
        q4_k: 36_864,
        q6_k: 53_760,
        bf16: 131_072,
        f32: 262_144,
      }[type];
      const spec: TensorSpec = { name: "t", type, shape, byteLength, deviation: 0.03, mean: 0 };
      const bytes = Buffer.concat([...randomTensor(spec, 16_384)]);
      assert.equal(bytes.byteLength, byteLength);
      const values = dequantize(type, bytes);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const square = values.reduce((sum, value) => sum + value * value, 0) / values.length;
      assert.ok(Math.abs(mean) < 0.001, `mean ${mean}`);
      assert.ok(Math.abs(Math.sqrt(square) / 0.03 - 1) < 0.06, `deviation ${Math.sqrt(square)}`);
    });
  }

  test("chunks do not change the bytes", () => {
    const spec: TensorSpec = {
      name: "x",
      type: "q4_0",
      shape: [8, 4096],
      byteLength: 18_432,
      deviation: 1,
      mean: 0,
    };
    const whole = Buffer.concat([...randomTensor(spec)]);
    assert.ok(whole.equals(Buffer.concat([...randomTensor(spec, 600)])));
  });
});
