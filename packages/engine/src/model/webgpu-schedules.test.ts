import { test } from "node:test";
import { fixtureAdapter, fixtureCheckpoint, fixtureGguf } from "@octavo/artifacts/testing/model-fixtures";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openMatrixGpu, openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import type { KvDtype } from "@octavo/kernels";
import { openNativeModel } from "../testing/oracles/native-model.js";
import { scheduleProperties } from "../testing/schedules/schedule-properties.js";

const gpu = await openTestGpu();
const matrixGpu = await openMatrixGpu();

/** Steps take a tenth of a second where the CPU draws: `npm run test:all -- --full` runs all, more often. */
const isFull = process.env["OCTAVO_TEST_FULL"] !== undefined;
const options = isFull ? { numRuns: 6 } : { numRuns: 2, seed: 5, maxRequests: 4, batchSize: 9 };

function schedules(
  name: string,
  path: string,
  dtype: KvDtype,
  { adapters = [], on = gpu }: { readonly adapters?: readonly string[]; readonly on?: typeof gpu } = {},
): void {
  if (typeof on === "string") {
    test(`same tokens under any schedule: ${name}, WebGPU`, { skip: on }, () => undefined);
    return;
  }
  const fusion = adapters.length === 0;
  scheduleProperties(
    `${name}, WebGPU`,
    () => openNativeModel(path, dtype, adapters, { backend: createWebGpuBackend(on, { fusion }) }),
    options,
  );
}

schedules("GGUF q4_0", fixtureGguf("llama3-q4_0"), "f16");
if (isFull) {
  schedules("bf16 with llama3 scaling", fixtureCheckpoint("llama3-bf16"), "bf16");
  schedules("f32 with a sliding window", fixtureCheckpoint("mistral"), "f16");
  schedules("experts in MXFP4, attention sinks", fixtureCheckpoint("gpt-oss"), "bf16");
  schedules("Gated DeltaNet beside attention", fixtureCheckpoint("qwen3-5"), "f32");
  schedules("latent attention", fixtureCheckpoint("deepseek-v3"), "f16");
  schedules("attention within chunks", fixtureCheckpoint("llama4"), "int8");
  schedules("GGUF q8_0 under adapters", fixtureGguf("llama3-q8_0"), "int8", {
    adapters: ["llama3-all", "llama3-upper"].map(fixtureAdapter),
  });
  schedules("GGUF q4_0 on matrix units", fixtureGguf("llama3-q4_0"), "f16", { on: matrixGpu });
}
