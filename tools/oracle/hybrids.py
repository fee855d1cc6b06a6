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

HYBRIDS = {
    "qwen3-5": (QWEN35, torch.float32, None),
    "qwen3-5-moe": (QWEN35_MOE, torch.float32, None),
    "qwen3-next": (QWEN3_NEXT, torch.float32, None),
}
HYBRID_SEEDS = {name: FIRST_SEED + index for index, name in enumerate(HYBRIDS)}


def draw_recurrent(name: str, values: torch.Tensor, model_type: str) -> torch.Tensor | None:
    """Values of parameters that only recurrent layers have, or that they read in another way; None for all others."""
    if name.endswith(("A_log", "dt_bias")):
        return 0.7 * values
    if name.endswith("linear_attn.norm.weight"):
        return 1 + 0.1 * values
    if name.endswith("norm.weight") and model_type.startswith(("qwen3_5", "qwen3_next")):
        return 0.1 * values
    return None
