import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { createWebGpuBackend, type GpuCounters } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { mulberry32 } from "@octavo/protocol/testing/mulberry32";
import type { EngineHooks } from "../engine-options.js";
import type { GenerationResult } from "../llm/generation-result.js";
import { LLM } from "../llm/llm.js";
import type { LoadProgress } from "../llm/load-options.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";

const gpu = await openTestGpu();

// First, so that the tests below find their shaders compiled.
test(
  "shaders are compiled at load with progress, and none later",
  { skip: typeof gpu === "string" && gpu },
  async () => {
    if (typeof gpu === "string") return;
    const progress: LoadProgress[] = [];
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      backend: createWebGpuBackend(gpu, { compilesAhead: true }),
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
    await llm.generate(prompt(60), { ...sampled, topK: 20 });
    assert.equal(gpu.counters.pipelines, pipelines, "a shader was compiled in a step");
  },
);

test(
  "steps are timed by the GPU's own clock on request, and the time without one is counted",
  { skip: typeof gpu === "string" && gpu },
  async (t) => {
    if (typeof gpu === "string") return;
    const timed = await openTestGpu({ timesSteps: true });
    assert.ok(typeof timed !== "string");
    if (!timed.features.includes("timestamp-query")) return t.skip("the adapter has no timestamps");
    using backend = createWebGpuBackend(timed, { ownsGpu: true });
    const checkpoint = await openCheckpoint(fixtureCheckpoint("llama3"));
    using runner = await ModelRunner.load(backend, checkpoint, 16, "f32");
    await runner.hidden([1, 2, 3]);
    await timed.settled();
    const first = { ...timed.counters };
    assert.ok(first.busyMs > 0 && first.gapMs === 0, JSON.stringify(first));
    await runner.hidden([4]);
    await timed.settled();
    assert.ok(timed.counters.busyMs > first.busyMs && timed.counters.gapMs > 0);
    assert.equal(gpu.counters.busyMs, 0);
  },
);

/** Beside the layers: embedding, gathered rows, last norm, head and its end. */
const outsideLayers = 5;

/** Dispatches of a layer that fusion may leave. Gemma 2 normalises after attention and MLP too. */
const budgets = { llama3: 7, "qwen3-f16": 7, gemma2: 7 } as const;

const tokensOf = (results: readonly GenerationResult[]): readonly unknown[] =>
  results.map(({ sequences }) => sequences.map(({ tokens }) => [...tokens]));

/** A checkpoint whose layers are those of another one, in turn, as often as is asked for. */
function deepened(checkpoint: Checkpoint, numLayers: number): Checkpoint {
  const { config } = checkpoint;
  const layers = Array.from({ length: numLayers }, (_, layer) => layer % config.numLayers);
  const tensors = [...checkpoint.tensors.values()].flatMap((tensor) => {
    const [, own, rest = ""] = /^model\.layers\.(\d+)\.(.*)$/.exec(tensor.name) ?? [];
    if (own === undefined) return [tensor];
    return layers.flatMap((from, layer) =>
      from === Number(own) ? [{ ...tensor, name: `model.layers.${layer}.${rest}` }] : [],
    );
  });
  return {
    ...checkpoint,
    config: { ...config, numLayers, slidingWindows: layers.map((layer) => config.slidingWindows[layer]) },
    tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])),
  };
}

test(
  "models of 28 layers keep to 7 dispatches a layer, and upload their angles once",
  { skip: typeof gpu === "string" && gpu },
  async () => {
    if (typeof gpu === "string") return;
    for (const name of ["llama3", "gemma2"]) {
      const checkpoint = deepened(await openCheckpoint(fixtureCheckpoint(name)), 28);
      const backend = createWebGpuBackend(gpu);
      using runner = await ModelRunner.load(backend, checkpoint, 16, "f32");
      await runner.hidden([1, 2, 3]);
      const before: GpuCounters = { ...gpu.counters };
      await runner.hidden([4]);
      const after: GpuCounters = { ...gpu.counters };
      const [used, uploaded] = [
        after.dispatches - before.dispatches,
        after.uploadedBytes - before.uploadedBytes,
      ];
      assert.ok(used <= 6 * 28 + outsideLayers + 2, `${name}: ${used} dispatches`);
      assert.equal(after.submits - before.submits, 1);
      assert.ok(uploaded <= 1024, `${name}: ${uploaded} bytes`);
      backend[Symbol.dispose]();
    }
  },
);

describe("sampling with top-k on WebGPU", { skip: typeof gpu === "string" && gpu }, () => {
  test("draws of the most likely tokens what it would draw of whole rows, which it reads only where those do not decide", async () => {
    if (typeof gpu === "string") return;
    const load = (hooks?: EngineHooks): Promise<LLM> =>
      LLM.load(fixtureCheckpoint("llama3"), {
        backend: createWebGpuBackend(gpu),
        maxModelLen: 64,
        maxNumSeqs: 8,
        kvCacheMemoryBytes: 1 << 20,
        ...(hooks !== undefined && { hooks }),
      });
    await using llm = await load();
    // With this hook, all rows come back.
    await using whole = await load({ onLogits: () => undefined });
    const random = mulberry32(7);
    const of = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
    let wholeRows = 0;
    for (let round = 0; round < 8; round++) {
      const options = {
        temperature: of([0.1, 0.7, 1, 3, 1000]),
        topK: of([1, 2, 5, 20, 50, 64]),
        topP: of([1, 0.95, 0.5, 0.01]),
        minP: of([0, 0, 0.05, 0.5]),
        seed: round,
        maxTokens: 3,
        ignoreEos: true,
      };
      const prompts = [1, 2, 3].map((token) => Int32Array.of(token, round + 1));
      const before: GpuCounters = { ...gpu.counters };
      const found = await llm.generate(prompts, options);
      const after: GpuCounters = { ...gpu.counters };
      const rows = 9;
      assert.equal(
        after.readBytes - before.readBytes,
        rows * (16 + 1040) + (after.wholeRows - before.wholeRows) * 4 * llm.config.vocabSize,
      );
      wholeRows += after.wholeRows - before.wholeRows;
      const expected = await whole.generate(prompts, options);
      assert.deepEqual(tokensOf(found), tokensOf(expected), JSON.stringify(options));
    }
    assert.ok(wholeRows <= 4 * 9, `${wholeRows} of 72 rows were read whole`);
  });
});

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
              pipelines: since("pipelines"),
              dispatches: since("dispatches"),
              uploadedBytes: since("uploadedBytes"),
              readBytes: since("readBytes"),
              wholeRows: since("wholeRows"),
              encodeMs: since("encodeMs"),
              gapMs: since("gapMs"),
              busyMs: since("busyMs"),
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
