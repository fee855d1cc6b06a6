import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LLM } from "../llm/llm.js";
import type { WeightCorruption } from "./corrupt-weights.js";

const fixture = (path: string): string =>
  fileURLToPath(new URL(`../../../artifacts/fixtures/${path}`, import.meta.url));

/** The logits behind a prompt. */
async function logitsOf(path: string, corruptWeights?: WeightCorruption): Promise<readonly number[]> {
  let found: readonly number[] = [];
  await using llm = await LLM.load(fixture(path), {
    enableFaultInjection: true,
    corruptWeights,
    hooks: { onLogits: (_request, _sequence, _position, logits) => (found = Array.from(logits)) },
  });
  await llm.generate(Int32Array.of(1, 5, 9, 3), { maxTokens: 1, temperature: 0 });
  return found;
}

describe("a model that is loaded with corrupted weights", () => {
  for (const path of ["quantized/awq-gemv", "models/checkpoints/llama3"]) {
    test(`${path} deviates by about the given scale, reproducibly`, async () => {
      const sound = await logitsOf(path);
      const slightly = await logitsOf(path, { seed: 1, scale: 0.001, pattern: "*self_attn*" });
      const badly = await logitsOf(path, { seed: 1, scale: 0.3, pattern: "*self_attn*" });
      assert.deepEqual(await logitsOf(path, { seed: 1, scale: 0.3, pattern: "*self_attn*" }), badly);
      const distance = (other: readonly number[]): number =>
        Math.hypot(...other.map((logit, index) => logit - sound[index]!));
      assert(distance(slightly) > 0 && distance(slightly) * 20 < distance(badly), path);
    });
  }

  test("are refused for formats that interleave scales and codes", async () => {
    await assert.rejects(logitsOf("gguf/llama3-q4_0.gguf", { seed: 1, scale: 0.1 }), {
      code: "artifact_unsupported",
      param: "corrupt_weights",
    });
  });
});
