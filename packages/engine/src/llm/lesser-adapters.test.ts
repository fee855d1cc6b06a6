import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { fixtureCheckpoint, readModelFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { createWebGpuBackend, type Gpu } from "@octavo/kernels-webgpu";
import { openLesserGpu } from "@octavo/kernels-webgpu/testing/lesser-gpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { compareGreedy } from "../testing/oracles/model-oracle-suite.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { LLM } from "./llm.js";
import type { LoadProgress } from "./load-options.js";

const gpu = await openTestGpu();
const skip = typeof gpu === "string" && gpu;
const path = fixtureCheckpoint("llama3");

test("an adapter without f16 or subgroups gives the reference tokens", { skip }, async () => {
  const least = await openLesserGpu({});
  assert.ok(typeof least !== "string");
  assert.deepEqual(least.features, []);
  using backend = createWebGpuBackend(least, { ownsGpu: true });
  const fixture = readModelFixtures().find(({ name }) => name === "llama3");
  assert.ok(fixture);
  const checkpoint = await openCheckpoint(path);
  using runner = await ModelRunner.load(
    backend,
    checkpoint,
    fixture.prompt.length + fixture.greedy.length,
    "f16",
  );
  await compareGreedy(runner, fixture);
  await assert.rejects(LLM.load(path, { backend, opTimes: true, kvCacheMemoryBytes: 1 << 20 }), {
    code: "invalid_option",
    param: "op_times",
  });
});

describe("a driver that compiles slowly", { skip }, () => {
  /** A driver that compiles a shader when it is told to. */
  async function slowGpu(): Promise<{
    readonly slow: Gpu;
    readonly compileOne: () => void;
    readonly waiting: () => number;
  }> {
    const slow = await openTestGpu();
    assert.ok(typeof slow !== "string");
    const held: (() => void)[] = [];
    const { device } = slow;
    const compile = device.createComputePipelineAsync.bind(device);
    device.createComputePipelineAsync = async (descriptor: Parameters<typeof compile>[0]) => {
      await new Promise<void>((go) => held.push(go));
      return compile(descriptor);
    };
    return { slow, compileOne: () => held.shift()?.(), waiting: () => held.length };
  }

  const turn = (): Promise<void> => new Promise((resume) => setTimeout(resume, 5));

  test("shows progress shader by shader while the event loop turns", async () => {
    const { slow, compileOne, waiting } = await slowGpu();
    using backend = createWebGpuBackend(slow, { ownsGpu: true, compilesAhead: true });
    const progress: LoadProgress[] = [];
    let isLoaded = false;
    const loading = LLM.load(path, {
      backend,
      maxModelLen: 16,
      maxNumSeqs: 1,
      maxNumBatchedTokens: 16,
      kvCacheMemoryBytes: 1 << 20,
      onProgress: (state) => void (state.phase === "compiling shaders" && progress.push(state)),
    }).finally(() => (isLoaded = true));
    while (waiting() === 0) await turn();
    const total = waiting();
    assert.deepEqual(progress, [
      { phase: "compiling shaders", unit: "shaders", doneBytes: 0, totalBytes: total },
    ]);
    for (let done = 1; done <= total; done++) {
      assert.equal(isLoaded, false);
      compileOne();
      while (progress.length <= done) await turn();
      assert.equal(progress.at(-1)?.doneBytes, done);
    }
    await (await loading)[Symbol.asyncDispose]();
  });

  test("is not waited for by a load that is cancelled", async () => {
    const { slow, compileOne, waiting } = await slowGpu();
    using backend = createWebGpuBackend(slow, { ownsGpu: true, compilesAhead: true });
    const controller = new AbortController();
    const { signal } = controller;
    const loading = LLM.load(path, { backend, maxModelLen: 16, kvCacheMemoryBytes: 1 << 20, signal });
    while (waiting() === 0) await turn();
    controller.abort();
    await assert.rejects(loading, { code: "request_cancelled" });
    while (waiting() > 0) compileOne();
    await slow.settled();
  });
});
