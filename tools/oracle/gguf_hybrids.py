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
}


def tile_heads(value: np.ndarray, axis: int, key_heads: int, head_size: int) -> np.ndarray:
    """Value heads from grouped by their key head to the order in which ggml repeats key heads."""
    value = np.moveaxis(value, axis, 0)
    rest = value.shape[1:]
    tiled = value.reshape(key_heads, -1, head_size, *rest).swapaxes(0, 1).reshape(-1, *rest)
    return np.moveaxis(tiled, 0, axis)


def reorder_recurrent(weights: dict[str, np.ndarray], config: dict, architecture: str) -> dict[str, np.ndarray]:
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
    if architecture == "qwen35":
        value_heads = config["linear_num_value_heads"]
        writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(config["linear_key_head_dim"])
        writer.add_ssm_group_count(config["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(value_heads)
        writer.add_ssm_inner_size(value_heads * config["linear_value_head_dim"])
        writer.add_full_attention_interval(4)
        writer.add_rope_dimension_sections([*config["rope_parameters"]["mrope_section"], 0])
