import assert from "node:assert/strict";
import test from "node:test";
import { readConfigJson } from "../config/config-json.js";
import type { ModelConfig } from "../program/model-config.js";

const small = {
  hidden_size: 64,
  intermediate_size: 96,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  num_hidden_layers: 4,
  vocab_size: 128,
};
const states = { layer_types: ["mamba", "mamba", "attention", "mamba"], mamba_n_heads: 4 };
const pattern = { hybrid_override_pattern: "M-*M" };
const experts = { hybrid_override_pattern: "ME*M", n_routed_experts: 8 };

/** Configurations that transformers' classes take, or that are broken, and what is said of them. */
const refused: readonly (readonly [modelType: string, config: object, message: RegExp])[] = [
  ["lfm2", { layer_types: ["conv", "conv", "full_attention", "mamba"] }, /a layer of type "mamba"/],
  ["lfm2", { full_attn_idxs: [1], conv_L_cache: 9 }, /a convolution over 9 tokens; 2 to 8 are possible/],
  ["lfm2", { layer_types: ["conv"] }, /gives 1 layer types for 4 layers/],
  ["lfm2", { layer_types: ["conv", "conv", "conv", "conv"] }, /has no layer with attention/],
  ["lfm2_moe", { full_attn_idxs: [1], num_experts: 4, num_experts_per_tok: 5 }, /has num_experts_per_tok 5/],
  ["lfm2_moe", { full_attn_idxs: [1], routed_scaling_factor: 0 }, /scales its experts' weights by 0/],
  ["granitemoehybrid", {}, /has no layer with attention/],
  [
    "granitemoehybrid",
    { ...states, mamba_n_groups: 3 },
    /4 state-space heads in 3 groups, which must divide/,
  ],
  ["granitemoehybrid", { ...states, mamba_d_head: 16 }, /4 state-space heads of 16 in 128 columns/],
  ["granitemoehybrid", { ...states, mamba_d_state: 18 }, /4 state-space heads of 32 by 18/],
  ["granitemoehybrid", { ...states, mamba_d_conv: 1 }, /a convolution over 1 tokens/],
  ["granitemoehybrid", { ...states, time_step_limit: [0.5, 0.1] }, /has the time_step_limit \[0.5,0.1\]/],
  ["falcon_h1", { attention_bias: true, attention_in_multiplier: 2 }, /biases beside its multipliers/],
  ["falcon_h1", { projectors_bias: true }, /biases beside its multipliers/],
  ["falcon_h1", { key_multiplier: -1 }, /has key_multiplier -1; a positive number is needed/],
  ["falcon_h1", { ssm_multipliers: [1, 1, 0, 1, 1] }, /has ssm_multipliers 0/],
  ["nemotron_h", {}, /has neither hybrid_override_pattern nor layers_block_type/],
  ["nemotron_h", { hybrid_override_pattern: "M?*M" }, /a layer of an unknown type, number 1/],
  ["nemotron_h", { ...pattern, mlp_hidden_act: "silu" }, /has the activation "silu"; supported is relu2/],
  ["nemotron_h", { ...experts, moe_latent_size: 32 }, /moe_latent_size/],
  ["nemotron_h", { ...experts, n_group: 3 }, /chooses 2 of 8 experts in 1 of 3 groups/],
  ["glm4_moe", { n_routed_experts: 8, n_group: 4, topk_group: 5 }, /number of groups a token goes to 5/],
  ["deepseek_v3", { qk_rope_head_dim: 7 }, /has qk_rope_head_dim 7; an even number is needed/],
  ["deepseek_v3", { kv_lora_rank: 0 }, /has kv_lora_rank 0/],
  ["deepseek_v3", { kv_lora_rank: 1024 }, /has headDim 1088/],
  ["deepseek_v2", { topk_method: "noaux_tc" }, /has the topk_method "noaux_tc"/],
  ["glm4_moe_lite", { q_lora_rank: 1.5 }, /has q_lora_rank 1.5/],
  [
    "glm4_moe_lite",
    { mlp_layer_types: ["sparse", "dense", "sparse", "sparse"] },
    /a dense layer behind its first mixture/,
  ],
  ["ernie4_5_moe", { moe_layer_end_index: 2 }, /has no experts behind layer 2/],
  ["qwen3_next", { linear_num_value_heads: 3, linear_num_key_heads: 2 }, /3 value heads over 2 key heads/],
  ["qwen3_5_moe_text", { num_experts: 0 }, /has num_experts 0/],
  ["llama4_text", { layer_types: windows(1, 1, 1, 0) }, /a layer of type "sliding_attention"/],
  ["llama4_text", { attention_chunk_size: null }, /but no attention_chunk_size/],
  ["llama4_text", { attention_chunk_size: 0.5 }, /sliding window 0.5/],
  ["llama4_text", { floor_scale: 0 }, /has floor_scale 0; a positive number/],
  ["llama4_text", { interleave_moe_layer_step: 0 }, /has interleave_moe_layer_step 0/],
  ["llama4_text", { num_experts_per_tok: 17 }, /has num_experts_per_tok 17, but num_experts is 16/],
  ["llama4_text", { no_rope_layers: [1, 0] }, /says of 2 layers whether they rotate, but has 4/],
  ["gemma4_text", { use_bidirectional_attention: "all" }, /attends in both directions/],
  ["gemma4_text", { sliding_window: null }, /has no sliding_window/],
  ["gemma4_text", { layer_types: windows(0, 1, 1, 0) }, /a sliding window in its last layer/],
  ["gemma4_text", { num_kv_shared_layers: 4 }, /4 of 4 layers that share keys and values/],
  [
    "gemma4_text",
    { num_kv_shared_layers: 2, layer_types: windows(0, 0, 0, 1) },
    /one of each kind is needed that has its own/,
  ],
  ["gemma4_text", { global_head_dim: 33 }, /heads of 33 in layers without a window/],
  [
    "gemma4_text",
    { attention_k_eq_v: true, num_global_key_value_heads: 3 },
    /3 key-value heads of layers without a window do not divide/,
  ],
  [
    "gemma4_text",
    { hidden_size_per_layer_input: -1 },
    /embeddings for each layer of the shape \[262144, -1\]/,
  ],
  ["gemma4_text", { per_layer_config: { 0: { head_dim: 64 } } }, /sets apart other layers/],
  [
    "gemma4_text",
    { layer_types: windows(1, 0, 0, 1), per_layer_config: { 0: { head_dim: 64 }, 3: { head_dim: 32 } } },
    /sets apart other layers/,
  ],
  ["gemma4_text", { enable_moe_block: true, num_experts: 4, top_k_experts: 5 }, /has num_experts_per_tok 5/],
  [
    "gemma4_text",
    { rope_parameters: { full_attention: { rope_type: "proportional", partial_rotary_factor: 2 } } },
    /rotates a share of 2 of each head/,
  ],
];

/** Layers with full attention are 1. */
function windows(...full: readonly number[]): string[] {
  return full.map((is) => (is === 1 ? "full_attention" : "sliding_attention"));
}

for (const [modelType, config, message] of refused) {
  test(`${modelType} with ${JSON.stringify(config)} is refused`, () => {
    const json = { ...small, model_type: modelType, ...config };
    assert.throws(
      () => readConfigJson("config.json", json, "bf16"),
      (error: Error & { code?: string }) => {
        assert.match(error.code ?? "", /^artifact_(?:invalid|unsupported)$/);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test("Gemma 4's heads are read from a file as published and as transformers 5 saves it", () => {
  const read = (config: object): unknown =>
    readConfigJson("config.json", { ...small, model_type: "gemma4_text", ...config }, "bf16").globalHeads;
  const values = { attention_k_eq_v: true };
  const saved = { 3: { head_dim: 128, num_key_value_heads: 1 } };
  const expected = { headDim: 128, numKvHeads: 1, valuesAreKeys: true };
  assert.deepEqual(read({ ...values, global_head_dim: 128, num_global_key_value_heads: 1 }), expected);
  assert.deepEqual(read({ ...values, per_layer_config: saved }), expected);
  // Their number differs only where values are keys.
  assert.deepEqual(read({ global_head_dim: 128, num_global_key_value_heads: 1 }), {
    headDim: 128,
    numKvHeads: 2,
    valuesAreKeys: false,
  });
});

test("a dense Granite 4 has an MLP of the shared size, and no experts", () => {
  const json = {
    ...small,
    ...states,
    model_type: "granitemoehybrid",
    num_local_experts: 0,
    shared_intermediate_size: 80,
  };
  const { experts: none, intermediateSize } = readConfigJson("config.json", json, "bf16");
  assert.deepEqual([none, intermediateSize], [undefined, 80]);
});

test("Llama 4's layers are read as published, and without experts", () => {
  const read = (config: object): ModelConfig =>
    readConfigJson("config.json", { ...small, model_type: "llama4_text", ...config }, "bf16");
  const scout = read({ no_rope_layers: [], moe_layers: [1, 3], interleave_moe_layer_step: 1 });
  assert.deepEqual(scout.layersWithoutRope, [false, false, false, true]);
  assert.deepEqual(scout.slidingWindows, [8192, 8192, 8192, undefined]);
  assert.deepEqual(scout.experts?.denseLayers, [true, false, true, false]);
  assert.deepEqual([scout.intermediateSize, scout.experts?.intermediateSize], [16_384, 96]);
  assert.deepEqual(scout.queryGrowth, { beta: 0.1, every: 8192, offset: 1, isWithoutRope: true });
  assert.equal(read({ attn_temperature_tuning: 0 }).queryGrowth, undefined);
  const all = { layer_types: Array.from({ length: 4 }, () => "full_attention") };
  const dense = read({ ...all, attention_chunk_size: null, moe_layers: [], interleave_moe_layer_step: 0 });
  assert.equal(dense.experts, undefined);
  assert.deepEqual(
    dense.slidingWindows,
    Array.from({ length: 4 }, () => undefined),
  );
});

/** As transformers' config classes have it. */
const normalised = {
  deepseek_v3: true,
  glm4_moe: true,
  glm4_moe_lite: true,
  lfm2_moe: true,
  nemotron_h: true,
  qwen3_next: true,
  olmoe: false,
  qwen2_moe: false,
  qwen3_moe: false,
} as const;

test("whether experts' weights add up to 1 where norm_topk_prob is absent, null or given", () => {
  const own: Readonly<Record<string, object>> = {
    nemotron_h: experts,
    lfm2_moe: { full_attn_idxs: [1] },
  };
  for (const [modelType, absent] of Object.entries(normalised)) {
    const read = (config: object): boolean | undefined => {
      const json = { ...small, num_experts_per_tok: 2, ...own[modelType], model_type: modelType, ...config };
      return readConfigJson("config.json", json, "bf16").experts?.normalizeWeights;
    };
    assert.equal(read({}), absent, modelType);
    assert.deepEqual(
      [null, true, false].map((given) => read({ norm_topk_prob: given })),
      [false, true, false],
    );
  }
});
