"""What make-gguf-fixtures.py writes of families with recurrent layers, as llama.cpp's converter does."""

import gguf
import numpy as np

HYBRID_NAMES = {
    "gemma4": {
        "layer_scalar": "layer_output_scale.weight", "per_layer_input_gate.weight": "inp_gate.weight",
        "per_layer_projection.weight": "proj.weight", "post_per_layer_input_norm.weight": "post_norm.weight",
        "router.proj.weight": "ffn_gate_inp.weight", "router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
        "experts.gate_up_proj": "ffn_gate_up_exps.weight", "experts.down_proj": "ffn_down_exps.weight",
        "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight", "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
        "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
    },
    "llama4": {
        f"feed_forward.{inside}.weight": f"{outside}.weight" for inside, outside in {
            "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down", "router": "ffn_gate_inp", "shared_expert.gate_proj": "ffn_gate_shexp",
            "shared_expert.up_proj": "ffn_up_shexp", "shared_expert.down_proj": "ffn_down_shexp",
        }.items()
    },
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
    if architecture == "llama4":
        return {name: value.swapaxes(1, 2) if value.ndim == 3 else value for name, value in weights.items()}
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


def add_gemma4(writer: gguf.GGUFWriter, config: dict) -> None:
    windows = [kind == "sliding_attention" for kind in config["layer_types"]]
    shared, layers = config["num_kv_shared_layers"], config["num_hidden_layers"]
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
    writer.add_sliding_window_pattern(windows)
    for size, add in ((config["global_head_dim"], (writer.add_key_length, writer.add_value_length, writer.add_rope_dimension_count)),
                      (config["head_dim"], (writer.add_key_length_swa, writer.add_value_length_swa, writer.add_rope_dimension_count_swa))):
        for one in add:
            one(size)
    if config["use_double_wide_mlp"]:
        inner = config["intermediate_size"]
        writer.add_feed_forward_length([inner if layer < layers - shared else 2 * inner for layer in range(layers)])
    if (heads := config["num_global_key_value_heads"]) is not None:
        writer.add_head_count_kv([config["num_key_value_heads"] if windowed else heads for windowed in windows])
    writer.add_rope_freq_base(config["rope_parameters"]["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(config["rope_parameters"]["sliding_attention"]["rope_theta"])


def proportional_factors(config: dict) -> np.ndarray:
    """The divisors of `rope_freqs.weight`: pairs that stay as they are have a huge one."""
    pairs = config["global_head_dim"] // 2
    turned = int(pairs * config["rope_parameters"]["full_attention"]["partial_rotary_factor"])
    return np.array([1.0] * turned + [1e30] * (pairs - turned), np.float32)


def add_recurrent(writer: gguf.GGUFWriter, architecture: str, config: dict) -> None:
    if architecture == "deepseek2":
        add_latent(writer, config)
    if architecture == "llama4":
        writer.add_interleave_moe_layer_step(config["interleave_moe_layer_step"])
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    if architecture == "qwen35":
        value_heads = config["linear_num_value_heads"]
        writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(config["linear_key_head_dim"])
        writer.add_ssm_group_count(config["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(value_heads)
        writer.add_ssm_inner_size(value_heads * config["linear_value_head_dim"])
        writer.add_full_attention_interval(4)
        writer.add_rope_dimension_sections([*config["rope_parameters"]["mrope_section"], 0])
