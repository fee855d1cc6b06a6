import assert from "node:assert/strict";
import test from "node:test";
import { readConfigJson } from "../config/config-json.js";

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
];

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
