import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { ModelConfig } from "../program/model-config.js";
import { planModel } from "../program/registry.js";
import { assertRefused } from "../testing/artifact-assertions.js";
import { fixtureGguf } from "../testing/model-fixtures.js";
import { encodeGguf, type GgufValue } from "../testing/write-gguf.js";
import type { Checkpoint, TensorInfo } from "../checkpoint/checkpoint.js";
import { openGguf } from "./checkpoint.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-gguf-architectures-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

function open(path: string): Checkpoint {
  return openGguf(path, "test");
}

function configOf(fixture: string): ModelConfig {
  return open(fixtureGguf(fixture)).config;
}

/** A copy of a fixture with bytes behind, or in, the first place where `text` stands changed. */
function changed(fixture: string, text: string, change: (bytes: Buffer, at: number) => void): string {
  const bytes = readFileSync(fixtureGguf(fixture));
  const at = bytes.indexOf(text);
  assert.ok(at > 0, text);
  change(bytes, at);
  const path = join(scratch, "changed.gguf");
  writeFileSync(path, bytes);
  return path;
}

/** Behind the key stand its type and, as u32, its value. */
function withNumber(fixture: string, key: string, value: number): string {
  return changed(fixture, key, (bytes, at) => bytes.writeUInt32LE(value, at + key.length + 4));
}

function renamed(fixture: string, from: string, to: string): string {
  assert.equal(from.length, to.length);
  return changed(fixture, from, (bytes, at) => bytes.write(to, at, "latin1"));
}

/** A file with an embedding alone, which is as far as the configuration looks. */
function headerOnly(kind: string, keys: Readonly<Record<string, GgufValue>>): string {
  const number = (value: number): GgufValue => ({ type: "u32", value });
  const metadata: Record<string, GgufValue> = {
    "general.architecture": { type: "string", value: kind },
    "tokenizer.ggml.model": { type: "string", value: "gpt2" },
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: ["a", "b", "c", "d"] },
    [`${kind}.context_length`]: number(64),
    [`${kind}.embedding_length`]: number(32),
    [`${kind}.block_count`]: number(6),
    [`${kind}.feed_forward_length`]: number(32),
    [`${kind}.attention.head_count`]: number(2),
    ...keys,
  };
  const path = join(scratch, "header.gguf");
  const tensors = [
    { name: "token_embd.weight", type: "f32", shape: [4, 32], data: new Float32Array(128) } as const,
  ];
  writeFileSync(path, encodeGguf({ metadata, tensors }));
  return path;
}

describe("GGUF's architectures", () => {
  it("Gemma 2: every second layer without a window, norms as they are, scores by the head size", () => {
    const config = configOf("gemma2-f16");
    assert.equal(config.normWeightOffset, undefined);
    assert.deepEqual(config.slidingWindows, [8, undefined]);
    assert.equal(config.embeddingScale, 8);
    assert.equal(config.attentionScale, 0.25);
    assert.equal(config.attentionSoftCap, 5);
    assert.equal(config.logitSoftCap, 3);
    assert.equal(config.hiddenActivation, "gelu_tanh");
    assert.equal(config.tieWordEmbeddings, true);
  });

  it("Gemma 3: every sixth layer without a window, the others with a rotation of their own", () => {
    const config = configOf("gemma3-q8_0");
    assert.deepEqual(config.slidingWindows, [8, 8, 8, 8, 8, undefined]);
    assert.deepEqual(config.rope.scaling, { kind: "linear", factor: 8 });
    assert.equal(config.localRope?.theta, 10_000);
    assert.deepEqual(config.localRope?.scaling, { kind: "none" });
    assert.equal(config.logitSoftCap, undefined);
  });

  it("Gemma's windows by layer, where the file lists them", () => {
    const listed = headerOnly("gemma3", {
      "gemma3.attention.sliding_window": { type: "u32", value: 16 },
      "gemma3.attention.sliding_window_pattern": {
        type: "array",
        of: "bool",
        value: [true, false, true, false, true, false],
      },
    });
    assert.deepEqual(open(listed).config.slidingWindows, [16, undefined, 16, undefined, 16, undefined]);
    const every = headerOnly("gemma3", {
      "gemma3.attention.sliding_window": { type: "u32", value: 16 },
      "gemma3.attention.sliding_window_pattern": { type: "u32", value: 3 },
    });
    assert.deepEqual(open(every).config.slidingWindows, [16, 16, undefined, 16, 16, undefined]);
  });

  it("Gemma's 27B models scale scores by hidden size / heads", () => {
    const large = headerOnly("gemma2", {
      "gemma2.block_count": { type: "u32", value: 46 },
      "gemma2.attention.key_length": { type: "u32", value: 4 },
      "gemma2.attention.value_length": { type: "u32", value: 4 },
    });
    assert.equal(open(large).config.attentionScale, 0.25);
  });

  it("Phi-3: both lists of factors", () => {
    const { scaling } = configOf("phi3-f16").rope;
    assert.ok(scaling.kind === "longrope");
    assert.deepEqual([...scaling.long.subarray(0, 3)], [1, 1.5, 2]);
    assert.ok(Math.abs(scaling.attentionFactor - Math.sqrt(1.5)) < 1e-6);
  });

  it("Granite: scales, the logits' as a divisor; no rotation where the file says so", () => {
    for (const name of ["granite-f16", "granitemoe-f16"]) {
      const config = configOf(name);
      assert.ok(Math.abs((config.attentionScale ?? 0) - 0.2) < 1e-6);
      assert.equal(config.embeddingScale, 3);
      assert.ok(Math.abs((config.residualScale ?? 0) - 0.6) < 1e-6);
      assert.equal(config.logitScale, 0.5);
      assert.equal(config.rope.layout, "interleaved");
      assert.equal(config.layersWithoutRope, undefined);
    }
    const unrotated = headerOnly("granite", {
      "granite.rope.scaling.finetuned": { type: "bool", value: false },
    });
    assert.ok(open(unrotated).config.layersWithoutRope?.every(Boolean));
  });

  it("GPT-OSS: every second layer without a window, sinks, biases of each expert", () => {
    const { config, tensors } = open(fixtureGguf("gpt-oss-mxfp4"));
    assert.deepEqual(config.slidingWindows, [8, undefined]);
    assert.equal(config.hiddenActivation, "clamped_swiglu");
    assert.ok(config.rope.scaling.kind === "yarn" && !config.rope.scaling.truncate);
    assert.deepEqual(tensors.get("model.layers.1.self_attn.sinks")?.shape, [4]);
    assert.deepEqual(tensors.get("model.layers.0.mlp.experts.3.up_proj.bias")?.shape, [32]);
  });

  it("SmolLM3: every fourth layer is not rotated", () => {
    assert.deepEqual(configOf("smollm3-q8_0").layersWithoutRope, [false, false, false, true]);
  });

  it("Llama 4: what no key says is as llama.cpp has it", () => {
    const config = configOf("llama4-f16");
    assert.deepEqual(config.slidingWindows, [8192, 8192, 8192, undefined]);
    assert.deepEqual(config.layersWithoutRope, [false, false, false, true]);
    assert.deepEqual(config.experts?.denseLayers, [true, false, true, false]);
    assert.equal(config.experts.sharedIntermediateSize, 32);
    assert.deepEqual([config.hasQueryKeyNorm, config.queryGrowth?.every], [true, 8192]);
    const keys = {
      "attention.layer_norm_rms_epsilon": { type: "f32", value: 1e-5 },
      "attention.sliding_window": { type: "u32", value: 0 },
      expert_count: { type: "u32", value: 128 },
      expert_used_count: { type: "u32", value: 1 },
      expert_feed_forward_length: { type: "u32", value: 16 },
      interleave_moe_layer_step: { type: "u32", value: 0 },
    } as const;
    const named = Object.fromEntries(Object.entries(keys).map(([key, value]) => [`llama4.${key}`, value]));
    const all = open(headerOnly("llama4", named)).config;
    assert.ok(all.slidingWindows.every((window) => window === undefined));
    assert.deepEqual(
      [all.layersWithoutRope, all.queryGrowth, all.hasQueryKeyNorm],
      [undefined, undefined, false],
    );
    assert.ok(all.experts?.denseLayers.every((isDense) => isDense));
  });

  it("mixtures of experts, one tensor of each expert", () => {
    const shared = configOf("qwen2moe-f16").experts;
    assert.equal(shared?.sharedIntermediateSize, 48);
    assert.equal(shared?.normalizeWeights, false);
    assert.equal(configOf("olmoe-f16").experts?.normalizeWeights, false);
    assert.equal(configOf("qwen3moe-q4_0").experts?.normalizeWeights, true);
    const { config, tensors } = open(fixtureGguf("mixtral-f16"));
    assert.equal(config.architecture, "MixtralForCausalLM");
    assert.deepEqual(tensors.get("model.layers.1.block_sparse_moe.experts.3.w2.weight")?.shape, [64, 48]);
    const sliced = open(fixtureGguf("qwen3moe-q3_k")).tensors;
    const expert = (index: number): TensorInfo | undefined =>
      sliced.get(`model.layers.0.mlp.experts.${index}.up_proj.weight`);
    const byteLength = 256 * 110;
    assert.deepEqual(
      [expert(2)?.type, expert(2)?.shape, expert(2)?.byteLength],
      ["q3_k", [256, 256], byteLength],
    );
    assert.equal(expert(2)?.offset, (expert(0)?.offset ?? NaN) + 2 * byteLength);
  });

  it("refuses mixtures that do not fit, by key or tensor", () => {
    assertRefused(
      () => open(withNumber("mixtral-f16", "llama.expert_used_count", 5)),
      "artifact_invalid",
      /llama\.expert_used_count 5, but llama\.expert_count is 4/,
    );
    assertRefused(
      () => open(withNumber("qwen3moe-q4_0", "qwen3moe.expert_feed_forward_length", 0)),
      "artifact_invalid",
      /qwen3moe\.expert_feed_forward_length 0/,
    );
    assertRefused(
      () => open(withNumber("mixtral-f16", "llama.expert_count", 3)),
      "artifact_invalid",
      /tensor "blk\.0\.ffn_(?:gate|up|down)_exps\.weight" has the shape \[4, \d+, \d+\]; with 3 experts/,
    );
    const { config, tensors } = open(renamed("mixtral-f16", "blk.1.ffn_down_exps", "blk.9.ffn_down_exps"));
    assertRefused(
      () => planModel(config, tensors),
      "artifact_invalid",
      /lacks the tensor "model\.layers\.1\.block_sparse_moe\.experts\.0\.w2\.weight"/,
    );
    const narrow = open(withNumber("qwen3moe-q4_0", "qwen3moe.expert_feed_forward_length", 32));
    assertRefused(
      () => planModel(narrow.config, narrow.tensors),
      "artifact_invalid",
      /experts\.0\.gate_proj\.weight" .*\[64, 64\].*\[32, 64\]/,
    );
  });

  it("refuses what it would only half support", () => {
    const number = (value: number): GgufValue => ({ type: "u32", value });
    for (const [kind, keys, message] of [
      ["granite", { "granite.expert_count": number(4) }, /a mixture of experts of the granite architecture/],
      [
        "qwen3moe",
        {
          "qwen3moe.expert_count": number(4),
          "qwen3moe.expert_used_count": number(2),
          "qwen3moe.expert_gating_func": number(2),
        },
        /not a softmax \(expert_gating_func 2\)/,
      ],
      ["dbrx", { "dbrx.expert_count": number(64) }, /"dbrx"; supported are llama, /],
    ] as const) {
      assertRefused(() => open(headerOnly(kind, keys)), "artifact_unsupported", message);
    }
  });
});
