"""Tiny GGUF files of the llama, qwen2 and qwen3 architectures in every weight type -> packages/engine/fixtures/gguf/.

Files named after a checkpoint of fixtures/models hold its weights as llama.cpp's converter would write them (q and k rows
of llama permuted for interleaved rotation, llama3 scaling as a `rope_freqs` tensor), so that the unquantised ones can be held
against the same logits. Files with K-quants need rows of 256 and get random weights of their own.
"""

import json
import math
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from k_quants import ENCODERS
from safetensors.torch import load_file

FIXTURES = Path(__file__).resolve().parents[2] / "packages/engine/fixtures"
OUT = FIXTURES / "gguf"
FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32, "Q4_0": 2, "Q5_0": 8, "Q8_0": 7, "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "Q4_K_M": 15}
LAYER_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
WIDE = {
    "vocab_size": 272, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 512, "bos_token_id": 269, "eos_token_id": 270,
}

# file -> (architecture, checkpoint of fixtures/models or a seed, weight type)
FILES = {
    "llama3-f32": ("llama", "llama3", "F32"),
    "llama3-f16": ("llama", "llama3", "F16"),
    "llama3-bf16": ("llama", "llama3", "BF16"),
    "llama3-q4_0": ("llama", "llama3", "Q4_0"),
    "llama3-q5_0": ("llama", "llama3", "Q5_0"),
    "llama3-q8_0": ("llama", "llama3", "Q8_0"),
    "qwen2-q8_0": ("qwen2", "qwen2", "Q8_0"),
    "qwen3-f16": ("qwen3", "qwen3", "F16"),
    "llama-q4_k": ("llama", 11, "Q4_K"),
    "llama-q5_k": ("llama", 12, "Q5_K"),
    "llama-q6_k": ("llama", 13, "Q6_K"),
    "qwen2-q4_k_m": ("qwen2", 24, "Q4_K_M"),
    "qwen3-q4_k_m": ("qwen3", 28, "Q4_K_M"),
}


def gguf_name(name: str) -> str:
    """Hugging Face's tensor name as llama.cpp's converter writes it."""
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    if name == "lm_head.weight":
        return "output.weight"
    _, _, layer, rest = name.split(".", 3)
    stem, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{LAYER_NAMES[stem]}.{kind}"


def read_checkpoint(name: str) -> tuple[dict, dict[str, np.ndarray]]:
    folder = FIXTURES / "models/checkpoints" / name
    config = json.loads((folder / "config.json").read_text())
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= {key: value.float().numpy() for key, value in load_file(file).items()}
    return config, {gguf_name(key): value for key, value in weights.items()}


def random_weights(architecture: str, seed: int) -> tuple[dict, dict[str, np.ndarray]]:
    generator = torch.Generator().manual_seed(seed)
    hidden, inner, heads, kv_heads, head_dim = 256, 256, 4, 2, 64

    def matrix(rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
        return (torch.randn(rows, columns, generator=generator) * gain / math.sqrt(columns)).numpy()

    def vector(length: int, mean: float, deviation: float) -> np.ndarray:
        return (mean + deviation * torch.randn(length, generator=generator)).numpy()

    tied = architecture != "llama"
    embedding, update = (6.0, 4.0) if tied else (16.0, 1.0)
    weights = {"token_embd.weight": matrix(WIDE["vocab_size"], hidden, embedding), "output_norm.weight": vector(hidden, 0.5, 0.05)}
    if not tied:
        weights["output.weight"] = matrix(WIDE["vocab_size"], hidden, 4.0)
    for layer in range(WIDE["num_hidden_layers"]):
        block = {
            "attn_norm.weight": vector(hidden, 1.0, 0.1), "ffn_norm.weight": vector(hidden, 1.0, 0.1),
            "attn_q.weight": matrix(heads * head_dim, hidden, 1.5), "attn_k.weight": matrix(kv_heads * head_dim, hidden, 1.5),
            "attn_v.weight": matrix(kv_heads * head_dim, hidden), "attn_output.weight": matrix(hidden, heads * head_dim, update),
            "ffn_gate.weight": matrix(inner, hidden), "ffn_up.weight": matrix(inner, hidden), "ffn_down.weight": matrix(hidden, inner, update),
        }
        if architecture == "qwen2":
            block |= {"attn_q.bias": vector(heads * head_dim, 0, 0.2), "attn_k.bias": vector(kv_heads * head_dim, 0, 0.2), "attn_v.bias": vector(kv_heads * head_dim, 0, 0.2)}
        if architecture == "qwen3":
            block |= {"attn_q_norm.weight": vector(head_dim, 1.0, 0.1), "attn_k_norm.weight": vector(head_dim, 1.0, 0.1)}
        weights |= {f"blk.{layer}.{name}": value for name, value in block.items()}
    return WIDE, weights


def interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows (i, i + d/2) of each head become neighbours, as llama.cpp rotates them for the llama architecture."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def llama3_factors(config: dict) -> np.ndarray:
    """The divisors of `rope_freqs.weight`, from Llama 3.1's rule."""
    scaling, dim = config["rope_scaling"], config["head_dim"]
    wavelengths = 2 * math.pi * config["rope_theta"] ** (np.arange(0, dim, 2) / dim)
    ratio = scaling["original_max_position_embeddings"] / wavelengths
    smooth = np.clip((ratio - scaling["low_freq_factor"]) / (scaling["high_freq_factor"] - scaling["low_freq_factor"]), 0, 1)
    return (1 / ((1 - smooth) / scaling["factor"] + smooth)).astype(np.float32)


def type_of(name: str, value: np.ndarray, kind: str) -> str:
    """Vectors stay f32. Q4_K_M keeps value and down projections of some layers, and the head, in Q6_K (llama-quant.cpp)."""
    if value.ndim == 1:
        return "F32"
    if kind != "Q4_K_M":
        return kind
    precise = name in ("output.weight", "token_embd.weight") or name in ("blk.0.attn_v.weight", "blk.0.ffn_down.weight")
    return "Q6_K" if precise else "Q4_K"


def encode(value: np.ndarray, kind: str) -> np.ndarray:
    if kind not in ENCODERS:
        return gguf.quants.quantize(np.ascontiguousarray(value), Type[kind])
    data = ENCODERS[kind](value.astype(np.float32)).reshape(value.shape[0], -1)
    decoded = gguf.quants.dequantize(data, Type[kind])
    error = np.abs(decoded - value).max() / np.abs(value).max()
    assert error < 0.08, f"{kind}: decoding differs by {error:.3f} of the largest weight"
    return data


def write(file: str, architecture: str, source: str | int, kind: str) -> None:
    config, weights = read_checkpoint(source) if isinstance(source, str) else random_weights(architecture, source)
    writer = gguf.GGUFWriter(OUT / f"{file}.gguf", architecture)
    writer.add_name(file)
    writer.add_file_type(FILE_TYPES[kind])
    writer.add_quantization_version(2)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    add_tokenizer(writer, architecture)
    if "rope_scaling" in config:
        weights["rope_freqs.weight"] = llama3_factors(config)
    for name, value in weights.items():
        if architecture == "llama" and "attn_q." in name:
            value = interleave(value, config["num_attention_heads"])
        if architecture == "llama" and "attn_k." in name:
            value = interleave(value, config["num_key_value_heads"])
        stored = type_of(name, value, kind)
        writer.add_tensor(name, encode(value, stored), raw_dtype=Type[stored])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{file}.gguf: {(OUT / f'{file}.gguf').stat().st_size} bytes")


def add_tokenizer(writer: gguf.GGUFWriter, architecture: str) -> None:
    folder = FIXTURES / "models/checkpoints/llama3"
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    by_id = {index: token for token, index in tokenizer["model"]["vocab"].items()} | special
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe" if architecture == "llama" else "qwen2")
    writer.add_token_list([by_id[index] for index in range(len(by_id))])
    writer.add_token_types([gguf.TokenType.CONTROL if index in special else gguf.TokenType.NORMAL for index in range(len(by_id))])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(269)
    writer.add_eos_token_id(270)
    writer.add_add_bos_token(False)
    writer.add_chat_template(json.loads((folder / "tokenizer_config.json").read_text())["chat_template"])


OUT.mkdir(parents=True, exist_ok=True)
for file, (architecture, source, kind) in FILES.items():
    write(file, architecture, source, kind)
