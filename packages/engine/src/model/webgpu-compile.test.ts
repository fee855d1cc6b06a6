import assert from "node:assert/strict";
import { test } from "node:test";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { LLM, type LoadProgress } from "../index.js";

const gpu = await openTestGpu();

test(
  "shaders are compiled at load with progress, and none later",
  { skip: typeof gpu === "string" && gpu },
  async () => {
    if (typeof gpu === "string") return;
    const progress: LoadProgress[] = [];
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      backend: createWebGpuBackend(gpu, { ownsGpu: true, compilesAhead: true }),
      maxModelLen: 64,
      maxNumSeqs: 16,
      maxNumBatchedTokens: 64,
      kvCacheMemoryBytes: 1 << 20,
      onProgress: (state) => progress.push(state),
    });
    const { pipelines } = gpu.counters;
    const shaders = progress.filter(({ phase }) => phase === "compiling shaders");
    assert.deepEqual(
      shaders.map(({ doneBytes }) => doneBytes),
      Array.from({ length: pipelines + 1 }, (_, done) => done),
    );
    assert.ok(shaders.every(({ totalBytes, unit }) => totalBytes === pipelines && unit === "shaders"));

    const prompt = (length: number): Int32Array =>
      Int32Array.from({ length }, (_, at) => (7 * at + length) % 60);
    const sampled = { temperature: 1, seed: 3, maxTokens: 3, ignoreEos: true };
    await llm.generate(prompt(1), { ...sampled, temperature: 0 });
    await llm.generate(
      Array.from({ length: 3 }, (_, at) => prompt(at + 2)),
      { ...sampled, logprobs: 2 },
    );
    await llm.generate(
      Array.from({ length: 12 }, (_, at) => prompt(at + 12)),
      sampled,
    );
    await llm.generate(prompt(60), sampled);
    assert.equal(gpu.counters.pipelines, pipelines, "a shader was compiled in a step");
  },
);
