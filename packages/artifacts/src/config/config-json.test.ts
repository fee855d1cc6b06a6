import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelConfig } from "../program/model-config.js";
import { assertRefused } from "../testing/artifact-assertions.js";
import { readConfigJson } from "./config-json.js";

function read(json: unknown): ModelConfig {
  return readConfigJson("config.json", json, "bf16");
}

/** As published with Llama 3.2 1B Instruct, Qwen2.5 0.5B Instruct and Qwen3 0.6B. */
const llama = {
  architectures: ["LlamaForCausalLM"],
  attention_bias: false,
  bos_token_id: 128000,
  eos_token_id: [128001, 128008, 128009],
  head_dim: 64,
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 8192,
  max_position_embeddings: 131072,
  mlp_bias: false,
  model_type: "llama",
  num_attention_heads: 32,
  num_hidden_layers: 16,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-5,
  rope_scaling: {
    factor: 32.0,
    high_freq_factor: 4.0,
    low_freq_factor: 1.0,
    original_max_position_embeddings: 8192,
    rope_type: "llama3",
  },
  rope_theta: 500000.0,
  tie_word_embeddings: true,
  vocab_size: 128256,
};
const qwen2 = {
  architectures: ["Qwen2ForCausalLM"],
  bos_token_id: 151643,
  eos_token_id: 151645,
  hidden_act: "silu",
  hidden_size: 896,
  intermediate_size: 4864,
  max_position_embeddings: 32768,
  max_window_layers: 21,
  model_type: "qwen2",
  num_attention_heads: 14,
  num_hidden_layers: 24,
  num_key_value_heads: 2,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000.0,
  sliding_window: 32768,
  tie_word_embeddings: true,
  use_sliding_window: false,
  vocab_size: 151936,
};
const small = { hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 3, vocab_size: 100 };
const experts = { ...small, num_key_value_heads: 2 };

describe("config.json", () => {
  it("reads Llama 3.2", () => {
    assert.deepEqual(read(llama), {
      architecture: "LlamaForCausalLM",
      vocabSize: 128256,
      hiddenSize: 2048,
      intermediateSize: 8192,
      numLayers: 16,
      numHeads: 32,
      numKvHeads: 8,
      headDim: 64,
      rmsNormEps: 1e-5,
      maxPositionEmbeddings: 131072,
      tieWordEmbeddings: true,
      attentionBias: false,
      attentionOutputBias: false,
      mlpBias: false,
      hiddenActivation: "silu",
      rope: {
        theta: 500000,
        rotaryDim: 64,
        layout: "neox",
        scaling: {
          kind: "llama3",
          factor: 32,
          lowFrequencyFactor: 1,
          highFrequencyFactor: 4,
          originalMaxPositions: 8192,
        },
      },
      slidingWindows: Array.from({ length: 16 }, () => undefined),
      dtype: "bf16",
      bosTokenId: 128000,
      eosTokenIds: [128001, 128008, 128009],
    });
  });

  it("gives Qwen2 biases on q, k and v alone, and no window unless asked", () => {
    const config = read(qwen2);
    assert.equal(config.attentionBias, true);
    assert.equal(config.attentionOutputBias, false);
    assert.equal(config.headDim, 64);
    assert.ok(config.slidingWindows.every((window) => window === undefined));
    const windowed = read({ ...qwen2, use_sliding_window: true, sliding_window: 4096 });
    assert.deepEqual(new Set(windowed.slidingWindows.slice(0, 21)), new Set([undefined]));
    assert.deepEqual(windowed.slidingWindows.slice(21), [4096, 4096, 4096]);
  });

  it("reads mixtures of experts", () => {
    // As published with Mixtral 8x7B, Qwen1.5-MoE A2.7B and Qwen3 30B-A3B, as far as it concerns experts.
    const large = read({
      ...experts,
      architectures: ["MixtralForCausalLM"],
      num_local_experts: 8,
      num_experts_per_tok: 2,
    });
    assert.deepEqual(large.experts, {
      count: 8,
      perToken: 2,
      intermediateSize: 14336,
      normalizeWeights: true,
      denseLayers: [false, false, false],
    });
    assert.equal(large.rope.theta, 1e6);
    const shared = read({
      ...experts,
      architectures: ["Qwen2MoeForCausalLM"],
      num_experts: 60,
      num_experts_per_tok: 4,
      moe_intermediate_size: 1408,
      shared_expert_intermediate_size: 5632,
      norm_topk_prob: false,
      decoder_sparse_step: 1,
    });
    assert.equal(shared.experts?.sharedIntermediateSize, 5632);
    assert.equal(shared.experts?.normalizeWeights, false);
    assert.equal(shared.attentionBias, true);
    const many = read({
      ...experts,
      architectures: ["Qwen3MoeForCausalLM"],
      num_experts: 128,
      num_experts_per_tok: 8,
      moe_intermediate_size: 768,
      norm_topk_prob: true,
      decoder_sparse_step: 2,
      mlp_only_layers: [1],
    });
    assert.deepEqual(many.experts?.denseLayers, [true, true, true]);
    assert.equal(many.experts?.normalizeWeights, true);
    assert.equal(
      read({ ...experts, architectures: ["Qwen3ForCausalLM"], num_experts: 8 }).experts,
      undefined,
    );
  });

  it("refuses mixtures that cannot be, by the key", () => {
    const mixture = {
      ...experts,
      architectures: ["Qwen3MoeForCausalLM"],
      num_experts: 8,
      num_experts_per_tok: 2,
    };
    const refused = (changes: Record<string, unknown>, message: RegExp): void =>
      assertRefused(() => read({ ...mixture, ...changes }), "artifact_invalid", message);
    refused({ num_experts_per_tok: 9 }, /num_experts_per_tok 9, but num_experts is 8/);
    refused({ num_experts_per_tok: 0 }, /num_experts_per_tok 0/);
    refused({ num_experts: 0 }, /num_experts 0/);
    refused({ num_experts: 1e9 }, /num_experts 1000000000/);
    refused({ moe_intermediate_size: 0.5 }, /moe_intermediate_size 0\.5/);
    refused({ decoder_sparse_step: 0 }, /decoder_sparse_step 0/);
    assertRefused(
      () => read({ ...experts, architectures: ["OlmoeForCausalLM"], clip_qkv: -8 }),
      "artifact_invalid",
      /clip_qkv -8; a positive number/,
    );
    assertRefused(
      () => read({ ...small, architectures: ["GptOssForCausalLM"], num_key_value_heads: 2, swiglu_limit: 5 }),
      "artifact_unsupported",
      /swiglu_limit 5/,
    );
  });

  it("gives Qwen's mixtures a window only when used, each by its own rule", () => {
    const windows = (architecture: string, changes: object): readonly (number | undefined)[] =>
      read({ ...experts, architectures: [architecture], sliding_window: 16, ...changes }).slidingWindows;
    for (const architecture of ["Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM"])
      assert.deepEqual(windows(architecture, {}), [undefined, undefined, undefined]);
    assert.deepEqual(windows("Qwen3MoeForCausalLM", { use_sliding_window: true }), [16, 16, 16]);
    assert.deepEqual(windows("Qwen2MoeForCausalLM", { use_sliding_window: true }), [16, undefined, 16]);
  });

  it("assumes what transformers' config classes assume", () => {
    const bare = read({ architectures: ["LlamaForCausalLM"] });
    assert.deepEqual(
      [bare.vocabSize, bare.hiddenSize, bare.intermediateSize, bare.numLayers, bare.numKvHeads, bare.headDim],
      [32000, 4096, 11008, 32, 32, 128],
    );
    assert.deepEqual([bare.maxPositionEmbeddings, bare.rmsNormEps, bare.rope.theta], [2048, 1e-6, 10000]);
    assert.deepEqual([bare.bosTokenId, bare.eosTokenIds, bare.tieWordEmbeddings], [1, [2], false]);
    const mistral = read({ architectures: ["MistralForCausalLM"] });
    assert.deepEqual(
      [mistral.numKvHeads, mistral.slidingWindows[0], mistral.maxPositionEmbeddings],
      [8, 4096, 131072],
    );
    assert.equal(
      read({ architectures: ["MistralForCausalLM"], sliding_window: null }).slidingWindows[0],
      undefined,
    );
    assert.equal(
      read({ ...small, architectures: ["Qwen3ForCausalLM"], num_key_value_heads: 2 }).headDim,
      128,
    );
    const qwen3 = {
      ...small,
      architectures: ["Qwen3ForCausalLM"],
      num_key_value_heads: null,
      head_dim: null,
    };
    assert.deepEqual([read(qwen3).headDim, read(qwen3).numKvHeads], [16, 4]);
  });

  it("takes the architecture from model_type when it is not named", () => {
    assert.equal(read({ ...small, model_type: "llama" }).architecture, "LlamaForCausalLM");
  });

  it("applies a Llama attention_bias to the output projection too, and mlp_bias", () => {
    const config = read({ ...llama, attention_bias: true, mlp_bias: true });
    assert.deepEqual([config.attentionBias, config.attentionOutputBias, config.mlpBias], [true, true, true]);
  });

  it("reads layer_types", () => {
    const types = ["sliding_attention", "full_attention", "sliding_attention"];
    const base = {
      ...small,
      architectures: ["Qwen3ForCausalLM"],
      num_key_value_heads: 4,
      layer_types: types,
    };
    assert.deepEqual(read({ ...base, sliding_window: 512 }).slidingWindows, [512, undefined, 512]);
    assertRefused(() => read({ ...base, sliding_window: null }), "artifact_invalid", /no sliding_window/);
    assertRefused(
      () => read({ ...base, layer_types: ["full_attention"] }),
      "artifact_invalid",
      /1 layer types for 3/,
    );
    assertRefused(
      () => read({ ...base, layer_types: ["mamba", "a", "b"] }),
      "artifact_unsupported",
      /"mamba"/,
    );
  });

  it("drops token ids that the vocabulary does not have", () => {
    const config = read({ ...small, model_type: "llama", bos_token_id: -1, eos_token_id: [2, 2, 100, -1] });
    assert.deepEqual([config.bosTokenId, config.eosTokenIds], [undefined, [2]]);
    assert.deepEqual(read({ ...small, model_type: "llama", eos_token_id: null }).eosTokenIds, []);
  });
});

describe("a config.json that cannot be served", () => {
  it("is refused with the architectures there are", () => {
    const gpt = { architectures: ["GPT2LMHeadModel"] };
    assertRefused(
      () => read(gpt),
      "artifact_unsupported",
      /"GPT2LMHeadModel"; supported are LlamaForCausalLM, /,
    );
    assertRefused(
      () => read({ model_type: "mamba2" }),
      "artifact_unsupported",
      /model_type "mamba2"; supported are LlamaForCausalLM, /,
    );
    assertRefused(() => read({ architectures: ["constructor"] }), "artifact_unsupported", /constructor/);
    assertRefused(() => read({}), "artifact_invalid", /neither an architecture/);
  });

  const brokenFamilies: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ["gemma2", { query_pre_attn_scalar: -1 }, /query_pre_attn_scalar -1; a positive number/],
    ["gemma2", { final_logit_softcapping: 0 }, /final_logit_softcapping 0/],
    ["gemma3_text", { rope_local_base_freq: 0 }, /rope_local_base_freq 0/],
    ["granite", { logits_scaling: 0 }, /logits_scaling 0/],
    ["smollm3", { no_rope_layers: [1, 7] }, /no_rope_layers/],
    ["smollm3", { no_rope_layer_interval: 0 }, /no_rope_layer_interval/],
    ["gemma3_text", { sliding_window_pattern: 0 }, /sliding_window_pattern/],
    ["qwen2", { max_window_layers: -1 }, /max_window_layers/],
    ["qwen2_moe", { mlp_only_layers: [0.5] }, /mlp_only_layers/],
    ["smollm3", { no_rope_layers: [1] }, /says of 1 layers whether they rotate, but has 2/],
    [
      "phi3",
      {
        max_position_embeddings: 128,
        original_max_position_embeddings: 64,
        rope_scaling: { type: "longrope", long_factor: [1] },
      },
      /without short_factor/,
    ],
    [
      "phi3",
      {
        max_position_embeddings: 128,
        original_max_position_embeddings: 64,
        rope_scaling: { type: "longrope", long_factor: [1], short_factor: [1] },
      },
      /has 1 rope factors for \d+ frequencies/,
    ],
  ];
  for (const [model_type, change, message] of brokenFamilies) {
    it(`of ${model_type} is refused for ${JSON.stringify(change)}`, () => {
      assertRefused(
        () => read({ ...small, model_type, num_hidden_layers: 2, ...change }),
        "artifact_invalid",
        message,
      );
    });
  }

  const broken: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ hidden_size: "big" }, /hidden_size: .*number/],
    [{ hidden_size: 0 }, /hiddenSize 0/],
    [{ hidden_size: 64.5, head_dim: 16 }, /hiddenSize 64\.5/],
    [{ vocab_size: -1 }, /vocabSize -1/],
    [{ vocab_size: 1e12 }, /vocabSize 1000000000000/],
    [{ num_hidden_layers: 1e9 }, /numLayers 1000000000/],
    [{ num_hidden_layers: -3 }, /numLayers -3/],
    [{ num_attention_heads: 3 }, /3 heads do not divide/],
    [{ num_attention_heads: 0 }, /heads do not divide|headDim/],
    [{ num_key_value_heads: 3 }, /3 key-value heads do not divide/],
    [{ head_dim: 15 }, /odd head size/],
    [{ rms_norm_eps: 0 }, /epsilon 0/],
    [{ rms_norm_eps: 2 }, /epsilon 2/],
    ...[-1, 0, 1e-320, 0.5, 1].map(
      (theta) => [{ rope_theta: theta }, /rope base \S+; a number above 1/] as const,
    ),
    [{ max_position_embeddings: 0 }, /maxPositionEmbeddings 0/],
    [{ eos_token_id: "</s>" }, /eos_token_id/],
    [{ eos_token_id: 1e12 }, /eos_token_id/],
    [{ eos_token_id: [2, 4_194_304] }, /eos_token_id/],
    [{ eos_token_id: -2 }, /eos_token_id/],
    [{ bos_token_id: 1.5 }, /bos_token_id/],
    [{ architectures: [] }, /empty list of architectures/],
    [{ tie_word_embeddings: "yes" }, /tie_word_embeddings/],
    [{ architectures: "LlamaForCausalLM" }, /architectures/],
  ];
  for (const [change, message] of broken) {
    it(`is refused for ${JSON.stringify(change)}`, () => {
      assertRefused(() => read({ ...small, model_type: "llama", ...change }), "artifact_invalid", message);
    });
  }

  it("is refused for a sliding window or activation that makes no sense", () => {
    const mistral = { ...small, num_key_value_heads: 4, model_type: "mistral" };
    assertRefused(() => read({ ...mistral, sliding_window: 0 }), "artifact_invalid", /sliding window 0/);
    assertRefused(() => read({ ...mistral, hidden_act: "relu" }), "artifact_unsupported", /"relu"/);
  });

  it("is refused when it is no object", () => {
    for (const json of [null, [], 7, "x"])
      assertRefused(() => read(json), "artifact_invalid", /config\.json/);
  });
});
