import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { LLM } from "../index.js";

const octavoMini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));
const gpu = await openTestGpu();
const skip = typeof gpu === "string" && gpu;

test("options that mean nothing on a GPU are refused before one is opened", async () => {
  for (const [option, param] of [
    [{ numThreads: 2 }, "numThreads"],
    [{ weightsInPlace: true }, "weightsInPlace"],
    [{ weightCache: "auto" }, "weightCache"],
    [{ kernels: "features" }, "kernels"],
    [{ tensorParallelSize: 2 }, "tensorParallelSize"],
    [{ pipelineParallelSize: 2 }, "pipelineParallelSize"],
    [{ memoryUtilization: 0.5 }, "gpu_memory_utilization"],
  ] as const)
    await assert.rejects(LLM.load(octavoMini, { device: "webgpu", ...option }), {
      code: "invalid_option",
      param,
    });
  await assert.rejects(LLM.load(octavoMini, { device: "tpu" }), {
    code: "invalid_option",
    message: /cpu, auto, webgpu or webgpu:ADAPTER/,
  });
});

test("an adapter of another name is not there, which is said before a model is looked for", async () => {
  for (const model of [octavoMini, "/nowhere/model"])
    await assert.rejects(LLM.load(model, { device: "webgpu:no such adapter" }), {
      code: "native_unavailable",
    });
});

test("products in f16 need a GPU, and one with matrix units", async () => {
  await assert.rejects(LLM.load(octavoMini, { gpuProducts: "f16" }), {
    code: "invalid_option",
    param: "gpu_products",
  });
  if (typeof gpu !== "string" && gpu.matrixShapes.length > 0) return;
  await assert.rejects(LLM.load(octavoMini, { device: "webgpu", gpuProducts: "f16" }), {
    code: "native_unavailable",
  });
});

test("auto leaves software adapters out and says why", async () => {
  const warnings: string[] = [];
  await using llm = await LLM.load(octavoMini, { device: "auto", onWarning: (text) => warnings.push(text) });
  assert.equal(llm.backend.info.name, "cpu");
  assert.match(warnings.join("\n"), /The model runs on the CPU\. /);
});

describe("octavo-mini on a GPU", { skip }, () => {
  const chat = [{ role: "user", content: "Hello! Who are you?" }] as const;

  test("answers as on the CPU, in a bounded number of dispatches, uploads and bytes read, and ends clearly when the GPU is lost", async () => {
    if (typeof gpu === "string") return;
    const request = { temperature: 0, maxTokens: 6, ignoreEos: true };
    await using onCpu = await LLM.load(octavoMini, { maxModelLen: 256 });
    const expected = await onCpu.chat(chat, request);
    using backend = createWebGpuBackend(gpu);
    await using llm = await LLM.load(octavoMini, { backend, maxModelLen: 256 });
    const loaded = { ...gpu.counters };
    const answer = await llm.chat(chat, request);
    assert.equal(answer.text, expected.text);
    const { submits, dispatches, uploadedBytes, readBytes } = gpu.counters;
    const steps = submits - loaded.submits;
    const { numLayers } = llm.config;
    // Beside the layers: embedding, gather, last norm, head, and what finishes it.
    const perStep = (dispatches - loaded.dispatches) / steps;
    assert.ok(perStep <= 7 * numLayers + 5, `${perStep} dispatches a step of ${numLayers} layers`);
    assert.equal(readBytes - loaded.readBytes, 16 * steps, "a row's token and nothing more");
    const uploaded = uploadedBytes - loaded.uploadedBytes;
    assert.ok(uploaded <= steps * 8192 + 64 * 1024, `${uploaded} bytes uploaded in ${steps} steps`);

    gpu.device.destroy();
    await assert.rejects(async () => llm.chat(chat, request), { code: "engine_failed" });
  });
});

test("activations that no binding holds are refused with the tokens that fit", { skip }, async () => {
  const other = await openTestGpu();
  if (typeof other === "string") return;
  using backend = createWebGpuBackend(other, { ownsGpu: true });
  const loading = LLM.load(octavoMini, { backend, maxNumBatchedTokens: 200_000 });
  await assert.rejects(loading, { code: "out_of_memory", message: /about \d+ tokens a step fit/ });
});

test("weights that the GPU has no memory for are refused with what had fitted", { skip }, async () => {
  const other = await openTestGpu();
  if (typeof other === "string") return;
  using backend = createWebGpuBackend(other, { ownsGpu: true });
  let scopes = 0;
  const { device } = other;
  const pop = device.popErrorScope.bind(device);
  // A software adapter has the machine's memory: the driver's answer is planted.
  device.popErrorScope = async () => {
    const error = await pop();
    scopes += 1;
    return scopes === 3 ? { message: "vkAllocateMemory failed." } : error;
  };
  await assert.rejects(LLM.load(octavoMini, { backend }), {
    code: "out_of_memory",
    message:
      /no memory left for \S+, after [\d.]+ .iB that fitted: vkAllocateMemory failed\. .*stay within about as much/,
  });
});

test("a KV cache whose layers no binding holds is refused with the size that fits", { skip }, async () => {
  const other = await openTestGpu();
  if (typeof other === "string") return;
  using backend = createWebGpuBackend(other, { ownsGpu: true });
  const kvCacheMemoryBytes = 32 * other.mostBytes;
  const loading = LLM.load(octavoMini, { backend, maxNumBatchedTokens: 64, kvCacheMemoryBytes });
  await assert.rejects(loading, { code: "out_of_memory", message: /a KV cache of [\d.]+ .iB fits/ });
});
