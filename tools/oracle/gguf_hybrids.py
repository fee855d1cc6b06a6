"""What make-gguf-fixtures.py writes of families with recurrent layers, as llama.cpp's converter does."""

import gguf
import numpy as np

HYBRID_NAMES = {
    "qwen35": {
        "post_attention_layernorm.weight": "post_attention_norm.weight", "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
        "linear_attn.in_proj_z.weight": "attn_gate.weight", "linear_attn.in_proj_b.weight": "ssm_beta.weight",
        "linear_attn.in_proj_a.weight": "ssm_alpha.weight", "linear_attn.conv1d.weight": "ssm_conv1d.weight",
        "linear_attn.dt_bias": "ssm_dt.bias", "linear_attn.A_log": "ssm_a", "linear_attn.norm.weight": "ssm_norm.weight",
        "linear_attn.out_proj.weight": "ssm_out.weight",
    },
    "deepseek2": {
        "self_attn.q_a_proj.weight": "attn_q_a.weight", "self_attn.q_a_layernorm.weight": "attn_q_a_norm.weight",
        "self_attn.q_b_proj.weight": "attn_q_b.weight", "self_attn.kv_a_proj_with_mqa.weight": "attn_kv_a_mqa.weight",
        "self_attn.kv_a_layernorm.weight": "attn_kv_a_norm.weight", "self_attn.k_b_proj.weight": "attn_k_b.weight",
        "self_attn.v_b_proj.weight": "attn_v_b.weight", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
        "mlp.shared_experts.gate_proj.weight": "ffn_gate_shexp.weight", "mlp.shared_experts.up_proj.weight": "ffn_up_shexp.weight",
        "mlp.shared_experts.down_proj.weight": "ffn_down_shexp.weight",
    },
}


def tile_heads(value: np.ndarray, axis: int, key_heads: int, head_size: int) -> np.ndarray:
    """Value heads from grouped by their key head to the order in which ggml repeats key heads."""
    value = np.moveaxis(value, axis, 0)
    rest = value.shape[1:]
    tiled = value.reshape(key_heads, -1, head_size, *rest).swapaxes(0, 1).reshape(-1, *rest)
    return np.moveaxis(tiled, 0, axis)


def split_latent(weights: dict[str, np.ndarray], config: dict) -> dict[str, np.ndarray]:
    """kv_b_proj by heads: the keys' part transposed, as queries go through it, and the values'."""
    out = {}
    for name, value in weights.items():
        if not name.endswith("kv_b_proj.weight"):
            out[name] = value
            continue
        by_head = value.reshape(config["num_attention_heads"], -1, config["kv_lora_rank"])
        keys, values = np.split(by_head, [config["qk_nope_head_dim"]], axis=1)
        out[name.replace("kv_b_proj", "k_b_proj")] = np.ascontiguousarray(keys.swapaxes(1, 2))
        out[name.replace("kv_b_proj", "v_b_proj")] = np.ascontiguousarray(values)
    return out


def add_latent(writer: gguf.GGUFWriter, config: dict) -> None:
    writer.add_kv_lora_rank(config["kv_lora_rank"])
    if config["q_lora_rank"] is not None:
        writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_key_length_mla(config["qk_nope_head_dim"] + config["qk_rope_head_dim"])
    writer.add_value_length_mla(config["v_head_dim"])
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if config["n_group"] > 1:
        writer.add_expert_group_count(config["n_group"])
        writer.add_expert_group_used_count(config["topk_group"])
    if scaling := config.get("rope_scaling"):
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])


def reorder_recurrent(weights: dict[str, np.ndarray], config: dict, architecture: str) -> dict[str, np.ndarray]:
    if architecture == "deepseek2":
        return split_latent(weights, config)
    if architecture != "qwen35":
        return weights
    key_heads, size = config["linear_num_key_heads"], config["linear_value_head_dim"]
    key_rows = 2 * key_heads * config["linear_key_head_dim"]
    out = {}
    for name, value in weights.items():
        leaf = name.split("linear_attn.")[-1]
        if leaf == "A_log":
            value = -np.exp(value)
        if leaf in ("A_log", "dt_bias", "in_proj_a.weight", "in_proj_b.weight"):
            value = tile_heads(value, 0, key_heads, 1)
        if leaf == "in_proj_z.weight":
            value = tile_heads(value, 0, key_heads, size)
        if leaf == "out_proj.weight":
            value = tile_heads(value, 1, key_heads, size)
        if leaf == "conv1d.weight":
            value = value.squeeze(1)
        if leaf in ("in_proj_qkv.weight", "conv1d.weight"):
            value = np.concatenate([value[:key_rows], tile_heads(value[key_rows:], 0, key_heads, size)])
        # The converter adds the 1 of (1 + weight).
        if name.endswith("norm.weight") and leaf != "norm.weight":
            value = value + 1
        out[name] = np.ascontiguousarray(value)
    return out


def add_recurrent(writer: gguf.GGUFWriter, architecture: str, config: dict) -> None:
    if architecture == "deepseek2":
        add_latent(writer, config)
    if architecture == "qwen35":
        value_heads = config["linear_num_value_heads"]
        writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(config["linear_key_head_dim"])
        writer.add_ssm_group_count(config["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(value_heads)
        writer.add_ssm_inner_size(value_heads * config["linear_value_head_dim"])
        writer.add_full_attention_interval(4)
        writer.add_rope_dimension_sections([*config["rope_parameters"]["mrope_section"], 0])
