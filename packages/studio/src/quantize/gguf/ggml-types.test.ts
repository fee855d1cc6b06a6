import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import { writeTinyFolder } from "@octavo/artifacts/testing/tiny-checkpoint";
import { openCheckpoint } from "@octavo/engine";
import { ggufMixes } from "@octavo/artifacts/gguf/mixes";
import { weightError } from "../report/errors.js";
import { quantize } from "../quantize.js";
import { artifactValues } from "../testing/artifact-values.js";
import { encodeGgml, type GgmlTypeName, ggmlTypes } from "./ggml-types.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-gguf-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Largest squared error relative to normal values, with some room above what was found. */
const bounds: Readonly<Partial<Record<GgmlTypeName, number>>> = {
  Q4_0: 0.0085,
  Q4_1: 0.0075,
  Q5_0: 0.002,
  Q5_1: 0.0018,
  Q8_0: 4e-5,
  IQ4_NL: 0.0075,
  IQ4_XS: 0.0075,
  Q2_K: 0.12,
  Q3_K: 0.03,
  Q4_K: 0.006,
  Q5_K: 0.0015,
  Q6_K: 0.0004,
};

/** Sums of uniform values, which are normal enough. */
function normalValues(length: number): Float32Array {
  const random = new TestRandom(7);
  return Float32Array.from({ length }, () => {
    let sum = 0;
    for (const part of random.floats(12, 1)) sum += part;
    return sum;
  });
}

describe("blocks", () => {
  for (const [name, bound] of Object.entries(bounds)) {
    test(`${name} of normal values is as near as its bits allow, and keeps zeros`, () => {
      const values = normalValues(4096);
      const type = ggmlTypes[name as GgmlTypeName];
      const stored = values.slice();
      const bytes = encodeGgml(type, stored);
      assert.equal(bytes.byteLength, (4096 / type.blockElements) * type.blockBytes);
      const error = weightError(values, stored);
      assert.ok(error < bound && error > bound / 20, `${name}: ${error}`);
      const zeros = new Float32Array(256);
      encodeGgml(type, zeros);
      assert.ok(zeros.every((value) => value === 0));
    });

    if (name === "Q8_0") continue;
    test(`${name} spends its accuracy where the importance is`, () => {
      const type = ggmlTypes[name as GgmlTypeName];
      const values = normalValues(16_384);
      const importance = Float32Array.from({ length: 512 }, (_, column) => (column % 7 === 0 ? 50 : 0.5));
      const loss = (given?: Float32Array): number => {
        const stored = values.slice();
        encodeGgml(type, stored, given);
        return values.reduce((sum, x, at) => sum + importance[at % 512]! * (x - stored[at]!) ** 2, 0);
      };
      assert.ok(loss(importance) < 0.9 * loss(), `${name}: ${loss(importance)} for ${loss()}`);
      const zeros = new Float32Array(512);
      encodeGgml(type, zeros, importance);
      assert.ok(zeros.every((value) => value === 0));
    });
  }
});

describe("files", () => {
  const cases = { LlamaForCausalLM: true, Qwen2ForCausalLM: false, Qwen3ForCausalLM: false } as const;
  for (const architecture of Object.keys(cases) as (keyof typeof cases)[]) {
    test(`${architecture}: the engine reads the values that were meant, under every mix`, async () => {
      const source = join(scratch, architecture);
      // llama.cpp's Qwen2 has heads that are as wide as the hidden size together.
      const headDim = architecture === "Qwen2ForCausalLM" ? 64 : 32;
      const shape = { hiddenSize: 256, intermediateSize: 96, headDim, numLayers: 1 } as const;
      writeTinyFolder(source, { architecture, type: "bf16", ...shape });
      const original = await artifactValues(source);
      for (const mix of architecture === "Qwen3ForCausalLM" ? ggufMixes.keys() : ["Q8_0", "Q4_K_M"]) {
        const out = join(scratch, `${architecture}-${mix}`);
        const card = await quantize(source, { method: `gguf:${mix}`, out });
        const { config } = await openCheckpoint(out);
        assert.equal(config.architecture, architecture);
        const found = await artifactValues(out);
        assert.deepEqual([...found.keys()].toSorted(), [...original.keys()].toSorted());
        for (const { name, error } of card.modules) {
          const tensor = `${name}.weight`;
          const expected = rotated(tensor, original.get(tensor)!, cases[architecture]);
          const measured = weightError(expected, found.get(tensor)!);
          assert.ok(
            Math.abs(measured - error) <= 0.001 * error + 1e-9,
            `${mix} ${name}: ${measured} for ${error}`,
          );
        }
      }
    });
  }

  test("tensors of several stretches, on threads, are what they are in one", async () => {
    const source = join(scratch, "wide");
    const shape = { hiddenSize: 1024, intermediateSize: 2304, headDim: 32, numLayers: 1 } as const;
    writeTinyFolder(source, { type: "bf16", tieWordEmbeddings: true, ...shape });
    const original = await artifactValues(source);
    const bytes = [];
    for (const numThreads of [1, 3]) {
      const out = join(scratch, `wide-${numThreads}`);
      const { modules } = await quantize(source, { method: "gguf:Q8_0", out, numThreads });
      const found = await artifactValues(out);
      for (const name of ["model.layers.0.mlp.gate_proj", "model.layers.0.mlp.down_proj"]) {
        const measured = weightError(original.get(`${name}.weight`)!, found.get(`${name}.weight`)!);
        const error = modules.find((module) => module.name === name)?.error ?? 0;
        assert.ok(
          error > 0 && Math.abs(measured - error) < 0.001 * error,
          `${name}: ${measured} for ${error}`,
        );
      }
      bytes.push(readFileSync(join(out, "model-Q8_0.gguf")));
    }
    assert.ok(bytes[0]!.equals(bytes[1]!));
  });

  test("Q4_K_M spends more bits where llama.cpp does, and replaces blocks that do not fit", async () => {
    const source = join(scratch, "deep");
    writeTinyFolder(source, {
      architecture: "Qwen3ForCausalLM",
      hiddenSize: 256,
      numLayers: 8,
      type: "bf16",
    });
    const card = await quantize(source, { method: "gguf:Q4_K_M", out: join(scratch, "mix") });
    const typeOf = (name: string): string | undefined =>
      card.modules.find((module) => module.name === name)?.type;
    const layers = (part: string): (string | undefined)[] =>
      Array.from({ length: 8 }, (_, layer) => typeOf(`model.layers.${layer}.${part}`));
    assert.deepEqual(layers("self_attn.v_proj"), [
      "Q6_K",
      "Q4_K",
      "Q4_K",
      "Q6_K",
      "Q4_K",
      "Q4_K",
      "Q6_K",
      "Q6_K",
    ]);
    assert.deepEqual(layers("mlp.down_proj"), [
      "Q8_0",
      "Q5_0",
      "Q5_0",
      "Q8_0",
      "Q5_0",
      "Q5_0",
      "Q8_0",
      "Q8_0",
    ]);
    assert.equal(typeOf("lm_head"), "Q6_K");
    assert.equal(typeOf("model.embed_tokens"), "Q4_K");
    assert.equal(typeOf("model.layers.1.self_attn.q_proj"), "Q4_K");
  });
});

/** Rotary pairs side by side, where the format wants them. */
function rotated(name: string, values: Float32Array, interleaves: boolean): Float32Array {
  if (!interleaves || !/[qk]_proj\.weight$/.test(name)) return values;
  const out = new Float32Array(values.length);
  for (let row = 0; row < values.length / 256; row++) {
    const [head, within] = [Math.floor(row / 32), row % 32];
    const target = head * 32 + (within < 16 ? 2 * within : 2 * (within - 16) + 1);
    out.set(values.subarray(row * 256, row * 256 + 256), target * 256);
  }
  return out;
}
