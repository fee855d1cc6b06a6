import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createCpuBackend } from "@octavo/kernels";
import { compareGguf } from "../testing/oracles/gguf-oracle-suite.js";
import { fixtureGguf, type GgufFixture } from "@octavo/artifacts/testing/model-fixtures";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";

const script = fileURLToPath(new URL("../../../../tools/oracle/run-llama-cpp.mjs", import.meta.url));
const NOT_INSTALLED = 3;

test("llama.cpp itself, run now, agrees with the native backend", async (context) => {
  for (const name of ["llama3-q4_0", "qwen3-q4_k_m", "llama3-bf16"]) {
    const path = fixtureGguf(name);
    const run = await runLlamaCpp(path);
    if (run === undefined)
      return context.skip("node-llama-cpp is not installed; set NODE_LLAMA_CPP_DIR to run this");
    assert.equal(run.greedy.length, 64);
    using backend = createCpuBackend({ numThreads: 2 });
    const checkpoint = await openCheckpoint(path);
    using runner = await ModelRunner.load(backend, checkpoint, run.prompt.length + run.greedy.length, "f32");
    await compareGguf(runner, run, checkpoint.config.dtype === "quantized" ? "quantized" : "float");
  }
});

async function runLlamaCpp(path: string): Promise<Omit<GgufFixture, "name" | "path"> | undefined> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--print", path]);
    return JSON.parse(stdout) as Omit<GgufFixture, "name" | "path">;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === NOT_INSTALLED) return undefined;
    throw error;
  }
}
