import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { createWebGpuBackend, type GpuCounters } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { LLM } from "../llm/llm.js";

const gpu = await openTestGpu();

/** Beside the layers: embedding, gathered rows, last norm, head and its end. */
const outsideLayers = 5;

/** Dispatches of a layer that fusion may leave. Gemma 2 normalises after attention and MLP too, in dispatches of their own. */
const budgets = { llama3: 7, "qwen3-f16": 7, gemma2: 10 } as const;

describe("what a decode step costs on WebGPU", { skip: typeof gpu === "string" && gpu }, () => {
  for (const [name, perLayer] of Object.entries(budgets)) {
    test(`${name}: ${perLayer} dispatches a layer, one submit, 16 bytes back a row`, async () => {
      if (typeof gpu === "string") return;
      await using llm = await LLM.load(fixtureCheckpoint(name), {
        backend: createWebGpuBackend(gpu),
        maxModelLen: 64,
        maxNumSeqs: 4,
        kvCacheMemoryBytes: 1 << 20,
      });
      const steps: GpuCounters[] = [];
      let before: GpuCounters = { ...gpu.counters };
      using _ = llm.engine.observe({
        onStep({ prefillTokens, decodeTokens }) {
          const now: GpuCounters = { ...gpu.counters };
          const since = (key: keyof GpuCounters): number => now[key] - before[key];
          if (prefillTokens === 0 && decodeTokens === 2)
            steps.push({
              submits: since("submits"),
              dispatches: since("dispatches"),
              uploadedBytes: since("uploadedBytes"),
              readBytes: since("readBytes"),
              encodeMs: since("encodeMs"),
            });
          before = now;
        },
      });
      const prompts = [Int32Array.of(1, 2, 3), Int32Array.of(4, 5, 6)];
      await llm.generate(prompts, { temperature: 0, ignoreEos: true, maxTokens: 5 });
      assert.ok(steps.length > 0, "no step decoded both");
      const most = perLayer * llm.config.numLayers + outsideLayers;
      for (const { submits, dispatches, uploadedBytes, readBytes } of steps) {
        assert.equal(submits, 1);
        assert.equal(readBytes, 2 * 16);
        assert.ok(dispatches <= most, `${dispatches} dispatches, ${most} allowed`);
        // Ids, positions and block tables, and cosines and sines of two positions.
        assert.ok(uploadedBytes <= 1024, `${uploadedBytes} bytes uploaded`);
      }
    });
  }
});
