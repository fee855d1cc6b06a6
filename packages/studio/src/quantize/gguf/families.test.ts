import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { openCheckpoint } from "@octavo/engine";
import { editSafetensors } from "@octavo/artifacts/testing/edit-safetensors";
import { ModelRunner } from "@octavo/engine/testing";
import { createCpuBackend } from "@octavo/kernels";
import { quantize } from "../quantize.js";
import { type FamilyCheckpoint, ggufFamilies, writeFamily } from "../testing/gguf-families.js";
import { writtenForm } from "./model-metadata.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-families-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;
const fresh = (): string => join(scratch, String(counter++));

const prompt = Array.from({ length: 24 }, (_, index) => (index * 37 + 5) % 256);

/** Log-probabilities of every position. */
async function logprobs(path: string): Promise<Float64Array[]> {
  using backend = createCpuBackend({ numThreads: 2 });
  using runner = await ModelRunner.load(backend, await openCheckpoint(path), prompt.length, "f32");
  return (await runner.logits(prompt)).map((logits) => {
    const most = logits.reduce((a, b) => Math.max(a, b));
    const shift = most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
    return Float64Array.from(logits, (logit) => logit - shift);
  });
}

function divergence(expected: readonly Float64Array[], found: readonly Float64Array[]): number {
  let most = 0;
  for (const [row, values] of expected.entries()) {
    let sum = 0;
    for (const [id, value] of values.entries()) sum += Math.exp(value) * (value - found[row]![id]!);
    most = Math.max(most, sum);
  }
  return most;
}

describe("every family as a GGUF file", () => {
  for (const family of ggufFamilies) {
    test(`${family.checkpoint}: the engine reads the same model from it`, async () => {
      const source = writeFamily(family, fresh());
      const original = await logprobs(source);
      const exact = fresh();
      const card = await quantize(source, { method: "gguf:F16", out: exact });
      const { config } = await openCheckpoint(exact);
      const { architecture } = (await openCheckpoint(source)).config;
      assert.equal(config.architecture, architecture.replace("Mistral", "Llama"));
      assert.ok(card.modules.every(({ error }) => error < 1e-6));
      const worst = divergence(original, await logprobs(exact));
      assert.ok(worst < 0.002, `${worst} nats`);
      const small = fresh();
      const { modules } = await quantize(source, { method: "gguf:Q8_0", out: small });
      assert.deepEqual(
        modules.map(({ name }) => name),
        card.modules.map(({ name }) => name),
      );
      const lost = divergence(original, await logprobs(small));
      assert.ok(lost < 0.1, `${lost} nats`);
    });
  }

  test("LongRoPE's two lists of factors", async () => {
    const [long, short] = [
      Array.from({ length: 8 }, (_, index) => 1 + index / 2),
      Array.from({ length: 8 }, () => 1),
    ];
    const phi = familyOf("phi3");
    const source = writeFamily(phi, fresh(), {
      original_max_position_embeddings: 64,
      rope_scaling: { type: "longrope", long_factor: long, short_factor: short },
    });
    const out = fresh();
    await quantize(source, { method: "gguf:F16", out });
    const { scaling } = (await openCheckpoint(out)).config.rope;
    assert.ok(scaling.kind === "longrope");
    assert.deepEqual([[...scaling.long], [...scaling.short]], [long, short]);
    const worst = divergence(await logprobs(source), await logprobs(out));
    assert.ok(worst < 0.002, `${worst} nats`);
  });

  test("experts are one tensor of the card, routers none", async () => {
    for (const name of ["mixtral", "olmoe", "granite-moe"]) {
      const source = writeFamily(familyOf(name), fresh());
      const { modules } = await quantize(source, { method: "gguf:Q4_0", out: fresh() });
      const ofLayer = modules.filter(({ name: module }) => module.startsWith("model.layers.1."));
      assert.equal(ofLayer.length, 4 + 3, name);
      assert.equal(ofLayer.filter(({ name: module }) => module.includes(".experts.*.")).length, 3, name);
    }
  });
});

describe("what a GGUF file cannot say is refused", () => {
  const refusals: readonly [family: string, config: Record<string, unknown>, message: RegExp][] = [
    ["gemma2", { query_pre_attn_scalar: 24 }, /another attention scale \(0\.204.*gemma2/],
    ["gemma2", { tie_word_embeddings: false }, /an output head of its own/],
    ["gemma2", { final_logit_softcapping: null }, /another cap of logits/],
    ["gemma3", { rope_local_base_freq: 5000 }, /another rotary embedding of layers with a window/],
    ["gemma3", { sliding_window_pattern: 2 }, /another sliding windows/],
    ["smollm3", { no_rope_layers: [1, 0] }, /another layers without rotation/],
    ["qwen2-moe", { norm_topk_prob: true }, /another experts/],
    ["olmo2", { tie_word_embeddings: true }, /has the embedding for an output head/],
    [
      "qwen3",
      { rope_scaling: { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 } },
      /one by one, which llama\.cpp's qwen3/,
    ],
    ["llama3", { rope_scaling: { rope_type: "dynamic", factor: 2 } }, /dynamic/],
    [
      "qwen3",
      { rope_scaling: { rope_type: "yarn", factor: 4, beta_fast: 16 } },
      /another rotary embedding \(.*"betaFast":16/,
    ],
  ];
  for (const [name, config, message] of refusals) {
    test(`${name} with ${JSON.stringify(config)}`, async () => {
      const source = writeFamily(familyOf(name), fresh(), config);
      await assert.rejects(quantize(source, { method: "gguf:Q8_0", out: fresh() }), {
        code: "artifact_unsupported",
        message,
      });
    });
  }

  test("what the model does not read is left out", async () => {
    const source = writeFamily(familyOf("granite"), fresh());
    editSafetensors(join(source, "model.safetensors"), (tensors) => {
      const found = tensors.get("model.norm.weight");
      assert.ok(found);
      tensors.set("model.layers.0.self_attn.extra_norm.weight", found);
      tensors.set("model.layers.7.input_layernorm.weight", found);
    });
    const out = fresh();
    await quantize(source, { method: "gguf:Q8_0", out });
    const { tensors } = await openCheckpoint(out);
    assert.ok([...tensors.keys()].every((name) => !/extra_norm|layers\.7/.test(name)));
  });

  test("a family that has no such files", async () => {
    const checkpoint = await openCheckpoint(writeFamily(familyOf("llama3"), fresh()));
    const config = { ...checkpoint.config, architecture: "GptOssForCausalLM" };
    assert.throws(() => writtenForm({ ...checkpoint, config }), {
      code: "artifact_unsupported",
      message: /is a GptOssForCausalLM; GGUF files are written for LlamaForCausalLM, .*SmolLM3ForCausalLM/,
    });
  });
});

function familyOf(checkpoint: string): FamilyCheckpoint {
  const found = ggufFamilies.find((family) => family.checkpoint === checkpoint);
  assert.ok(found, checkpoint);
  return found;
}
