import { z } from "zod";
import { largestVocabulary } from "./model-sizes.js";

/**
 * `rope_scaling` (before transformers 5, with the base beside it) and `rope_parameters` (since, with the base inside).
 * Source: transformers' modeling_rope_utils.py.
 */
const ropeParametersSchema = z.looseObject({
  rope_type: z.string().nullish(),
  type: z.string().nullish(),
  rope_theta: z.number().nullish(),
  partial_rotary_factor: z.number().nullish(),
  factor: z.number().nullish(),
  original_max_position_embeddings: z.number().nullish(),
  low_freq_factor: z.number().nullish(),
  high_freq_factor: z.number().nullish(),
  attention_factor: z.number().nullish(),
  beta_fast: z.number().nullish(),
  beta_slow: z.number().nullish(),
  mscale: z.number().nullish(),
  mscale_all_dim: z.number().nullish(),
  llama_4_scaling_beta: z.number().nullish(),
  truncate: z.boolean().nullish(),
  short_factor: z.array(z.number()).max(4096).nullish(),
  long_factor: z.array(z.number()).max(4096).nullish(),
});

export type RopeParameters = z.infer<typeof ropeParametersSchema>;

/** Placeholders such as -1 stand for none; beyond the largest vocabulary there is nothing that a number could mean. */
const tokenId = z
  .number()
  .int()
  .min(-1)
  .max(largestVocabulary - 1);
export const tokenIds = z.union([tokenId, z.array(tokenId).max(1024)]);

/** A layer's place in the model, or the distance between layers of a kind. */
const layerNumber = z.number().int().min(0).max(1_048_576);
const layerInterval = z.number().int().min(1).max(1_048_576);

/** RoPE parameters of all layers or, since transformers 5, one set for each kind of layer. */
const layeredRopeSchema = ropeParametersSchema.extend({
  full_attention: ropeParametersSchema.nullish(),
  sliding_attention: ropeParametersSchema.nullish(),
});

/** config.json as far as some family reads it. */
export const configSchema = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  model_type: z.string().nullish(),
  vocab_size: z.number().nullish(),
  hidden_size: z.number().nullish(),
  intermediate_size: z.number().nullish(),
  num_hidden_layers: z.number().nullish(),
  num_attention_heads: z.number().nullish(),
  num_key_value_heads: z.number().nullish(),
  head_dim: z.number().nullish(),
  rms_norm_eps: z.number().nullish(),
  layer_norm_eps: z.number().nullish(),
  max_position_embeddings: z.number().nullish(),
  tie_word_embeddings: z.boolean().nullish(),
  attention_bias: z.boolean().nullish(),
  attention_out_bias: z.boolean().nullish(),
  /** Gemma 4 says which tokens. */
  use_bidirectional_attention: z.union([z.boolean(), z.string()]).nullish(),
  /** By the layer's number; what transformers 5 makes of the two fields behind it. */
  per_layer_config: z
    .record(
      z.string(),
      z.looseObject({ head_dim: z.number().nullish(), num_key_value_heads: z.number().nullish() }),
    )
    .nullish(),
  global_head_dim: z.number().nullish(),
  num_global_key_value_heads: z.number().nullish(),
  attention_k_eq_v: z.boolean().nullish(),
  num_kv_shared_layers: z.number().int().min(0).max(1024).nullish(),
  use_double_wide_mlp: z.boolean().nullish(),
  hidden_size_per_layer_input: z.number().nullish(),
  vocab_size_per_layer_input: z.number().nullish(),
  enable_moe_block: z.boolean().nullish(),
  top_k_experts: z.number().nullish(),
  is_causal: z.boolean().nullish(),
  type_vocab_size: z.number().int().min(0).max(1024).nullish(),
  pad_token_id: z
    .number()
    .int()
    .min(-1)
    .max(largestVocabulary - 1)
    .nullish(),
  position_embedding_type: z.string().nullish(),
  is_decoder: z.boolean().nullish(),
  norm_eps: z.number().nullish(),
  norm_bias: z.boolean().nullish(),
  local_attention: z.number().int().min(2).nullish(),
  global_attn_every_n_layers: layerInterval.nullish(),
  global_rope_theta: z.number().nullish(),
  local_rope_theta: z.number().nullish(),
  classifier_pooling: z.string().nullish(),
  classifier_activation: z.string().nullish(),
  classifier_bias: z.boolean().nullish(),
  id2label: z.record(z.string(), z.string()).nullish(),
  num_labels: z.number().int().min(1).max(4096).nullish(),
  problem_type: z.string().nullish(),
  sentence_transformers: z.looseObject({ activation_fn: z.string().nullish() }).nullish(),
  sbert_ce_default_activation_function: z.string().nullish(),
  use_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  hidden_act: z.string().nullish(),
  hidden_activation: z.string().nullish(),
  rope_theta: z.number().nullish(),
  rope_scaling: ropeParametersSchema.nullish(),
  rope_parameters: layeredRopeSchema.nullish(),
  original_max_position_embeddings: z.number().nullish(),
  partial_rotary_factor: z.number().nullish(),
  use_sliding_window: z.boolean().nullish(),
  sliding_window: z.number().nullish(),
  max_window_layers: layerNumber.nullish(),
  /** A number, or letters that stand for a repeated run of layers, "L" for those with a window (EXAONE 4). */
  sliding_window_pattern: z.union([layerInterval, z.string().regex(/^[LG]{1,64}$/)]).nullish(),
  rope_local_base_freq: z.number().nullish(),
  query_pre_attn_scalar: z.number().nullish(),
  attn_logit_softcapping: z.number().nullish(),
  final_logit_softcapping: z.number().nullish(),
  embedding_multiplier: z.number().nullish(),
  residual_multiplier: z.number().nullish(),
  attention_multiplier: z.number().nullish(),
  logits_scaling: z.number().nullish(),
  logit_scale: z.number().nullish(),
  no_rope_layers: z.array(z.number().int().min(0).max(1)).max(1024).nullish(),
  no_rope_layer_interval: layerInterval.nullish(),
  qkv_bias: z.boolean().nullish(),
  clip_qkv: z.number().nullish(),
  swiglu_limit: z.number().nullish(),
  swiglu_alpha: z.number().nullish(),
  num_local_experts: z.number().optional(),
  num_experts: z.number().nullish(),
  num_experts_per_tok: z.number().nullish(),
  moe_intermediate_size: z.number().nullish(),
  intermediate_size_mlp: z.number().nullish(),
  interleave_moe_layer_step: z.number().nullish(),
  moe_layers: z.array(layerNumber).max(1024).nullish(),
  attention_chunk_size: z.number().nullish(),
  attn_temperature_tuning: z.union([z.boolean(), z.number()]).nullish(),
  floor_scale: z.number().nullish(),
  attn_scale: z.number().nullish(),
  shared_expert_intermediate_size: z.number().nullish(),
  shared_intermediate_size: z.number().nullish(),
  norm_topk_prob: z.boolean().nullish(),
  decoder_sparse_step: z.number().nullish(),
  mlp_only_layers: z.array(layerNumber).max(1024).nullish(),
  full_attention_interval: z.number().int().min(1).nullish(),
  linear_conv_kernel_dim: z.number().nullish(),
  linear_key_head_dim: z.number().nullish(),
  linear_value_head_dim: z.number().nullish(),
  linear_num_key_heads: z.number().nullish(),
  linear_num_value_heads: z.number().nullish(),
  use_qk_norm: z.boolean().nullish(),
  rotary_dim: z.number().nullish(),
  moe_num_experts: z.number().optional(),
  moe_k: z.number().nullish(),
  moe_num_shared_experts: z.number().nullish(),
  moe_layer_start_index: layerNumber.nullish(),
  moe_layer_end_index: z.number().int().min(-1).nullish(),
  moe_layer_interval: layerInterval.nullish(),
  hybrid_override_pattern: z.string().max(1024).nullish(),
  kv_lora_rank: z.number().nullish(),
  q_lora_rank: z.number().nullish(),
  qk_nope_head_dim: z.number().nullish(),
  qk_rope_head_dim: z.number().nullish(),
  v_head_dim: z.number().nullish(),
  rope_interleave: z.boolean().nullish(),
  topk_method: z.string().nullish(),
  moe_layer_freq: z.number().nullish(),
  mlp_layer_types: z.array(z.string()).max(1024).nullish(),
  mamba_num_heads: z.number().nullish(),
  mamba_head_dim: z.number().nullish(),
  ssm_state_size: z.number().nullish(),
  n_groups: z.number().nullish(),
  conv_kernel: z.number().nullish(),
  use_conv_bias: z.boolean().nullish(),
  layer_norm_epsilon: z.number().nullish(),
  mlp_hidden_act: z.string().nullish(),
  n_routed_experts: z.number().optional(),
  n_shared_experts: z.number().nullish(),
  n_group: z.number().nullish(),
  topk_group: z.number().nullish(),
  first_k_dense_replace: layerNumber.nullish(),
  moe_shared_expert_intermediate_size: z.number().nullish(),
  moe_latent_size: z.number().nullish(),
  layers_block_type: z.array(z.string()).max(1024).nullish(),
  mamba_n_heads: z.number().nullish(),
  mamba_n_groups: z.number().nullish(),
  mamba_d_state: z.number().nullish(),
  mamba_d_head: z.union([z.number(), z.string()]).nullish(),
  mamba_d_conv: z.number().nullish(),
  mamba_d_ssm: z.number().nullish(),
  mamba_expand: z.number().nullish(),
  mamba_conv_bias: z.boolean().nullish(),
  mamba_proj_bias: z.boolean().nullish(),
  mamba_norm_before_gate: z.boolean().nullish(),
  mamba_rms_norm: z.boolean().nullish(),
  projectors_bias: z.boolean().nullish(),
  /** transformers writes infinity as null in a list. */
  time_step_limit: z
    .array(z.union([z.number(), z.null(), z.string()]))
    .length(2)
    .nullish(),
  lm_head_multiplier: z.number().nullish(),
  key_multiplier: z.number().nullish(),
  attention_in_multiplier: z.number().nullish(),
  attention_out_multiplier: z.number().nullish(),
  ssm_in_multiplier: z.number().nullish(),
  ssm_out_multiplier: z.number().nullish(),
  ssm_multipliers: z.array(z.number()).length(5).nullish(),
  mlp_multipliers: z.array(z.number()).length(2).nullish(),
  conv_L_cache: z.number().nullish(),
  conv_bias: z.boolean().nullish(),
  block_ff_dim: z.number().nullish(),
  block_auto_adjust_ff_dim: z.boolean().nullish(),
  block_ffn_dim_multiplier: z.number().nullish(),
  block_multiple_of: z.number().int().min(1).nullish(),
  full_attn_idxs: z.array(layerNumber).max(1024).nullish(),
  tie_embedding: z.boolean().nullish(),
  num_dense_layers: layerNumber.nullish(),
  use_expert_bias: z.boolean().nullish(),
  routed_scaling_factor: z.number().nullish(),
  layer_types: z.array(z.string()).max(1024).nullish(),
  bos_token_id: tokenIds.nullish(),
  eos_token_id: tokenIds.nullish(),
});

export type ConfigJson = z.infer<typeof configSchema>;
