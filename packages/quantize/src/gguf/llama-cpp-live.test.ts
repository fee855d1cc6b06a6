import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openCheckpoint } from "@octavo/engine";
import { compareGguf, type GgufFixture, ModelRunner } from "@octavo/engine/testing";
import { createCpuBackend } from "@octavo/kernels";
import { quantize } from "../quantize.js";
import { octavoMini } from "../testing/quality.js";

const script = fileURLToPath(new URL("../../../../tools/oracle/run-llama-cpp.mjs", import.meta.url));
const NOT_INSTALLED = 3;
const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-llama-cpp-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

test("llama.cpp loads the GGUF files that are written, and gives the engine's tokens", async (context) => {
  for (const mix of ["Q8_0", "Q4_K_M", "Q3_K_M"]) {
    const out = join(scratch, mix);
    await quantize(octavoMini, { method: `gguf:${mix}`, out });
    const run = await runLlamaCpp(join(out, `model-${mix}.gguf`));
    if (run === undefined)
      return context.skip("node-llama-cpp is not installed; set NODE_LLAMA_CPP_DIR to run this");
    assert.equal(run.greedy.length, 64);
    using backend = createCpuBackend({ numThreads: 2 });
    const checkpoint = await openCheckpoint(out);
    using runner = await ModelRunner.load(backend, checkpoint, run.prompt.length + run.greedy.length, "f32");
    await compareGguf(runner, run, "quantized");
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
