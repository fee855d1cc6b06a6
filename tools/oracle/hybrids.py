"""Families with recurrent layers for make-model-fixtures.py. Their seeds do not depend on the order of the other families'."""

import torch

FIRST_SEED = 1001

QWEN35 = {
    "model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "vocab_size": 272, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 4, "hidden_act": "silu", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 512, "tie_word_embeddings": False, "attention_bias": False, "bos_token_id": 269, "eos_token_id": 270,
    "torch_dtype": "float32", "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
    "rope_parameters": {
        "rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1], "mrope_interleaved": True,
    },
}

EXPERTS = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48}
QWEN35_MOE = {
    **{key: value for key, value in QWEN35.items() if key != "intermediate_size"}, **EXPERTS,
    "model_type": "qwen3_5_moe_text", "architectures": ["Qwen3_5MoeForCausalLM"],
}
QWEN3_NEXT = {
    **QWEN35, **EXPERTS, "model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], "norm_topk_prob": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
    "decoder_sparse_step": 1, "mlp_only_layers": [], "full_attention_interval": 4,
}

COMMON = {
    "vocab_size": 272, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 512, "tie_word_embeddings": False, "bos_token_id": 269, "eos_token_id": 270, "torch_dtype": "float32",
}
LFM2 = {
    **COMMON, "model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "norm_eps": 1e-5, "conv_L_cache": 3, "conv_bias": False, "pad_token_id": 0,
    "rope_theta": 1000000.0, "intermediate_size": 144, "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 32,
    "tie_embedding": True, "tie_word_embeddings": True, "layer_types": ["conv", "conv", "full_attention", "conv"],
}
LFM2_MOE = {
    **{key: value for key, value in LFM2.items() if not key.startswith("block_")}, "model_type": "lfm2_moe", "architectures": ["Lfm2MoeForCausalLM"],
    "intermediate_size": 96, "moe_intermediate_size": 32, "num_experts": 6, "num_experts_per_tok": 2, "num_dense_layers": 1, "use_expert_bias": True,
    "norm_topk_prob": True, "routed_scaling_factor": 1.0,
}
GRANITE4 = {
    **COMMON, "model_type": "granitemoehybrid", "architectures": ["GraniteMoeHybridForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "attention_bias": False, "rope_theta": 10000.0, "position_embedding_type": "nope", "embedding_multiplier": 3.0, "residual_multiplier": 0.6,
    "attention_multiplier": 0.2, "logits_scaling": 2.0, "num_local_experts": 0, "num_experts_per_tok": 0, "intermediate_size": 96,
    "shared_intermediate_size": 96, "layer_types": ["mamba", "mamba", "attention", "mamba"], "mamba_n_heads": 4, "mamba_n_groups": 1,
    "mamba_d_state": 16, "mamba_d_head": 32, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True, "mamba_proj_bias": False, "mamba_chunk_size": 16,
}
GRANITE4_MOE = {
    **GRANITE4, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 40, "shared_intermediate_size": 48, "mamba_n_groups": 2,
}
FALCON_H1 = {
    **COMMON, "model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5, "head_dim": 16,
    "rope_theta": 100000000000.0, "attention_bias": False, "mlp_bias": False, "projectors_bias": False, "num_hidden_layers": 3,
    "mamba_d_ssm": 96, "mamba_n_heads": 6, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
    "mamba_chunk_size": 16, "mamba_conv_bias": True, "mamba_proj_bias": False, "mamba_norm_before_gate": False, "mamba_rms_norm": True,
    "lm_head_multiplier": 0.5, "embedding_multiplier": 2.0, "mlp_multipliers": [0.8, 0.6], "key_multiplier": 0.7, "attention_out_multiplier": 0.9,
    "attention_in_multiplier": 1.2, "ssm_multipliers": [0.7, 0.8, 0.9, 1.1, 1.2], "ssm_in_multiplier": 1.3, "ssm_out_multiplier": 0.5,
}
FALCON_H1_PLAIN = {**FALCON_H1, "mamba_rms_norm": False, "mamba_n_groups": 1}
NEMOTRON_H = {
    **COMMON, "model_type": "nemotron_h", "architectures": ["NemotronHForCausalLM"], "head_dim": 16, "mlp_hidden_act": "relu2", "mlp_bias": False,
    "attention_bias": False, "layer_norm_epsilon": 1e-5, "ssm_state_size": 16, "mamba_num_heads": 4, "mamba_head_dim": 32, "n_groups": 2,
    "conv_kernel": 4, "expand": 2, "use_conv_bias": True, "use_bias": False, "chunk_size": 16, "mamba_proj_bias": False, "num_hidden_layers": 5,
    "hybrid_override_pattern": "M-*M-", "mamba_hidden_act": "silu",
}
NEMOTRON_H_MOE = {
    **{key: value for key, value in NEMOTRON_H.items() if key != "hybrid_override_pattern"},
    "layers_block_type": ["linear_attention", "moe", "full_attention", "linear_attention", "moe"], "n_routed_experts": 8,
    "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 48, "n_group": 1,
    "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
}
# Not hybrids: mixtures whose experts are chosen by biased sigmoids.
GLM4_MOE = {
    **COMMON, "model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5, "head_dim": 16,
    "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "attention_bias": True, "use_qk_norm": True, "num_hidden_layers": 3, "moe_intermediate_size": 32,
    "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "norm_topk_prob": True, "routed_scaling_factor": 2.5, "pad_token_id": 0,
}
MINIMAX_M2 = {
    **COMMON, "model_type": "minimax_m2", "architectures": ["MiniMaxM2ForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-6, "head_dim": 16,
    "rope_theta": 5000000.0, "rotary_dim": 8, "num_hidden_layers": 2, "intermediate_size": 32, "num_local_experts": 8, "num_experts_per_tok": 3,
    "scoring_func": "sigmoid",
}
ERNIE_MOE = {
    **COMMON, "model_type": "ernie4_5_moe", "architectures": ["Ernie4_5_MoeForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "num_hidden_layers": 3, "intermediate_size": 128, "moe_intermediate_size": 32, "moe_num_experts": 8, "moe_k": 3, "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1, "use_bias": False, "pad_token_id": 0,
}
# Latent attention.
DEEPSEEK_V3 = {
    **COMMON, "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "num_key_value_heads": 4, "num_hidden_layers": 3, "kv_lora_rank": 32, "q_lora_rank": 48, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 24, "moe_intermediate_size": 32, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2,
    "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
    "moe_layer_freq": 1, "attention_bias": False, "rope_theta": 10000.0, "num_nextn_predict_layers": 0,
    "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
    },
}
DEEPSEEK_V2 = {
    **{key: value for key, value in DEEPSEEK_V3.items() if key != "num_nextn_predict_layers"}, "model_type": "deepseek_v2",
    "architectures": ["DeepseekV2ForCausalLM"], "q_lora_rank": None, "scoring_func": "softmax", "topk_method": "group_limited_greedy", "norm_topk_prob": False,
    "routed_scaling_factor": 4.0, "n_shared_experts": 2,
    "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707,
    },
}
GLM4_MOE_LITE = {
    **{key: value for key, value in DEEPSEEK_V3.items() if key not in ("rope_scaling", "scoring_func", "topk_method", "moe_layer_freq")},
    "model_type": "glm4_moe_lite", "architectures": ["Glm4MoeLiteForCausalLM"], "rms_norm_eps": 1e-5, "n_group": 1, "topk_group": 1,
    "routed_scaling_factor": 1.8, "rope_theta": 1000000.0, "pad_token_id": 0,
}
# Nor these: layers whose keys and values differ in shape, are shared, or are one.
GEMMA4 = {
    **{key: value for key, value in COMMON.items() if key != "rope_theta"}, "model_type": "gemma4_text", "architectures": ["Gemma4ForCausalLM"],
    "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "attention_bias": False, "pad_token_id": 0,
    "head_dim": 16, "global_head_dim": 32, "sliding_window": 8, "num_hidden_layers": 3, "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 272, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "num_kv_shared_layers": 0, "use_double_wide_mlp": False, "enable_moe_block": False, "attention_k_eq_v": True,
    "num_key_value_heads": 4, "num_global_key_value_heads": 2, "final_logit_softcapping": 6.0, "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    },
}
GEMMA4_SMALL = {
    **GEMMA4, "num_hidden_layers": 6, "intermediate_size": 48, "layer_types": ["sliding_attention", "full_attention"] * 3, "num_kv_shared_layers": 2, "use_double_wide_mlp": True,
    "attention_k_eq_v": False, "num_global_key_value_heads": None, "hidden_size_per_layer_input": 16, "num_key_value_heads": 2,
}
GEMMA4_MOE = {
    **GEMMA4, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "enable_moe_block": True, "num_experts": 6,
    "top_k_experts": 2, "moe_intermediate_size": 32,
}
# Nor this: attention within chunks, layers that do not rotate, experts whose inputs are weighed.
LLAMA4 = {
    **COMMON, "model_type": "llama4_text", "architectures": ["Llama4ForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5, "head_dim": 24,
    "num_hidden_layers": 4, "intermediate_size": 32, "intermediate_size_mlp": 96, "num_local_experts": 6, "num_experts_per_tok": 2,
    "interleave_moe_layer_step": 2, "use_qk_norm": True, "no_rope_layer_interval": 4, "attention_chunk_size": 11, "attention_bias": False,
    "attn_temperature_tuning": True, "floor_scale": 8, "attn_scale": 0.3, "rope_theta": 500000.0, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
    },
}

HYBRIDS = {
    "qwen3-5": (QWEN35, torch.float32, None),
    "qwen3-5-moe": (QWEN35_MOE, torch.float32, None),
    "qwen3-next": (QWEN3_NEXT, torch.float32, None),
    "lfm2": (LFM2, torch.float32, None),
    "lfm2-moe": (LFM2_MOE, torch.float32, None),
    "granite4": (GRANITE4, torch.float32, None),
    "granite4-moe": (GRANITE4_MOE, torch.float32, None),
    "falcon-h1": (FALCON_H1, torch.float32, None),
    "falcon-h1-plain": (FALCON_H1_PLAIN, torch.float32, None),
    "nemotron-h": (NEMOTRON_H, torch.float32, None),
    "nemotron-h-moe": (NEMOTRON_H_MOE, torch.float32, None),
    "glm4-moe": (GLM4_MOE, torch.float32, None),
    "minimax-m2": (MINIMAX_M2, torch.float32, None),
    "ernie4-5-moe": (ERNIE_MOE, torch.float32, None),
    "deepseek-v3": (DEEPSEEK_V3, torch.float32, None),
    "deepseek-v2": (DEEPSEEK_V2, torch.float32, None),
    "glm4-moe-lite": (GLM4_MOE_LITE, torch.float32, None),
    "gemma4": (GEMMA4, torch.float32, None),
    "gemma4-small": (GEMMA4_SMALL, torch.float32, None),
    "gemma4-moe": (GEMMA4_MOE, torch.float32, None),
    "llama4": (LLAMA4, torch.float32, None),
}
HYBRID_SEEDS = {name: FIRST_SEED + index for index, name in enumerate(HYBRIDS)}


def draw_gemma4(name: str, values: torch.Tensor) -> torch.Tensor | None:
    if name.endswith("embed_tokens_per_layer.weight"):
        return 0.25 * values
    if name.endswith("embed_tokens.weight"):
        return 0.12 * values
    # Scores are not divided: normalised queries and keys get small weights.
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        return 0.7 + 0.1 * values
    if name.endswith("layer_scalar"):
        return 0.8 + 0.1 * values
    if name.endswith("per_expert_scale"):
        return 1 + 0.3 * values
    if name.endswith("router.scale"):
        return 8 * (1 + 0.2 * values)
    # Updates outweigh the tied embedding, or the model would repeat its last token.
    if name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")):
        return 3 + 0.3 * values
    return 1 + 0.1 * values if "norm" in name else None


def draw_recurrent(name: str, values: torch.Tensor, model_type: str) -> torch.Tensor | None:
    """Values of parameters that only recurrent layers have, or that they read in another way; None for all others."""
    if model_type.startswith("gemma4"):
        return draw_gemma4(name, values)
    if model_type == "llama4_text" and values.ndim == 3:
        # These stand transposed.
        return values / values.shape[1] ** 0.5
    if name.endswith(("A_log", "dt_bias")):
        return 0.7 * values
    if name.endswith(("expert_bias", "e_score_correction_bias")):
        return (0.1 if model_type.startswith("ernie") else 0.3) * values
    if name.endswith("layernorm.weight") and model_type.startswith("lfm2"):
        return 1 + 0.1 * values
    if name.endswith("norm_f.weight"):
        return 1 + 0.1 * values
    if name == "model.embeddings.weight":
        return values
    if name.endswith((".D", "mamba.norm.weight", "mixer.norm.weight")):
        return 1 + 0.2 * values
    if name.endswith("linear_attn.norm.weight"):
        return 1 + 0.1 * values
    if name.endswith("norm.weight") and model_type.startswith(("qwen3_5", "qwen3_next")):
        return 0.1 * values
    return None
