"""Tiny GGUF files of every architecture and weight type that Octavo reads -> packages/artifacts/fixtures/gguf/.

Files named after a checkpoint of fixtures/models hold its weights as llama.cpp's converter would write them (q and k rows
of llama permuted for interleaved rotation, llama3 scaling as a `rope_freqs` tensor), so that the unquantised ones can be held
against the same logits. Files with K-quants need rows of 256 and get random weights of their own. Names of files as arguments
make those alone anew.
"""

import itertools
import json
import math
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from gguf_hybrids import HYBRID_NAMES, add_gemma4, add_recurrent, proportional_factors, reorder_recurrent
from k_quants import ENCODERS, WORST_ERRORS
from low_bits import LOW_BITS, random_blocks
from safetensors.torch import load_file

FIXTURES = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures"
OUT = FIXTURES / "gguf"
FILE_TYPES = {
    "F32": 0, "F16": 1, "BF16": 32, "Q4_0": 2, "Q5_0": 8, "Q8_0": 7, "Q4_K": 15, "Q5_K": 17, "Q6_K": 18, "Q4_K_M": 15,
    "Q4_1": 3, "Q5_1": 9, "Q2_K": 10, "Q3_K": 12, "IQ4_NL": 25, "IQ4_XS": 30, "MXFP4": 38, "MXFP4_MOE": 38,
    "LOW_BITS": 19,
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up", "mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp",
    "block_sparse_moe.router.layer": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.router": "ffn_gate_inp",
}
POST_NORM_NAMES = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}
PER_LAYER_NAMES = {
    "model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
}
PERMUTED = ("llama", "granite", "granitemoe", "smollm3")
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
    "llama3-q4_1": ("llama", "llama3", "Q4_1"),
    "llama3-q5_1": ("llama", "llama3", "Q5_1"),
    "llama3-iq4_nl": ("llama", "llama3", "IQ4_NL"),
    "llama3-mxfp4": ("llama", "llama3", "MXFP4"),
    "llama-q2_k": ("llama", 31, "Q2_K"),
    "llama-iq4_xs": ("llama", 32, "IQ4_XS"),
    "mixtral-f16": ("llama", "mixtral", "F16"),
    "qwen2moe-f16": ("qwen2moe", "qwen2-moe", "F16"),
    "olmoe-f16": ("olmoe", "olmoe", "F16"),
    "granitemoe-f16": ("granitemoe", "granite-moe", "F16"),
    "llama-low-bits": ("llama", 35, "LOW_BITS"),
    "qwen3moe-q3_k": ("qwen3moe", 33, "Q3_K"),
    "qwen3moe-low-bits": ("qwen3moe", 36, "LOW_BITS"),
    "qwen3moe-q4_0": ("qwen3moe", 34, "Q4_0"),
    "gemma2-f16": ("gemma2", "gemma2", "F16"),
    "gemma3-q8_0": ("gemma3", "gemma3", "Q8_0"),
    "phi3-f16": ("phi3", "phi3", "F16"),
    "olmo2-f16": ("olmo2", "olmo2", "F16"),
    "granite-f16": ("granite", "granite", "F16"),
    "gpt-oss-mxfp4": ("gpt-oss", "gpt-oss", "MXFP4_MOE"),
    "smollm3-q8_0": ("smollm3", "smollm3", "Q8_0"),
    "qwen35-q8_0": ("qwen35", "qwen3-5", "Q8_0"),
    "deepseek2-f16": ("deepseek2", "deepseek-v3", "F16"),
    "deepseek2-flash-f16": ("deepseek2", "glm4-moe-lite", "F16"),
    "gemma4-f16": ("gemma4", "gemma4", "F16"),
    "gemma4-small-f16": ("gemma4", "gemma4-small", "F16"),
    "gemma4-moe-f16": ("gemma4", "gemma4-moe", "F16"),
    "llama4-f16": ("llama4", "llama4", "F16"),
}
# Layers beyond the checkpoint's are its own again: these architectures treat every fourth, or every sixth, in another way.
NUM_LAYERS = {"smollm3": 4, "gemma3": 6}
LOW_BIT_TURNS = itertools.cycle(LOW_BITS)
LONG_FACTORS = [1.0 + 0.5 * index for index in range(8)]


def gguf_name(name: str, architecture: str) -> str:
    """Hugging Face's tensor name as llama.cpp's converter writes it."""
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    if name == "lm_head.weight":
        return "output.weight"
    if name in PER_LAYER_NAMES:
        return PER_LAYER_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    if rest in HYBRID_NAMES.get(architecture, {}):
        return f"blk.{layer}.{HYBRID_NAMES[architecture][rest]}"
    if rest == "self_attn.sinks":
        return f"blk.{layer}.attn_sinks.weight"
    stem, kind = rest.rsplit(".", 1)
    names = LAYER_NAMES | POST_NORM_NAMES if architecture in ("gemma2", "gemma3", "gemma4", "olmo2", "gpt-oss") else LAYER_NAMES
    return f"blk.{layer}.{names[stem]}.{kind}"


def merge_experts(weights: dict[str, np.ndarray], layer: int) -> dict[str, np.ndarray]:
    """A layer's experts as GGUF holds them: gate, up and down, each of all experts."""
    merged = {}
    prefix = f"model.layers.{layer}."
    taken = [name for name in weights if name.startswith(prefix) and (".experts." in name or "put_linear." in name)]
    parts = {name: weights.pop(name) for name in taken}
    for name, value in parts.items():
        if name.endswith(("gate_up_proj", "input_linear.weight")):
            merged["gate"], merged["up"] = np.split(value, 2, axis=1)
        elif name.endswith(("experts.down_proj", "output_linear.weight")):
            merged["down"] = value
    for part, leaves in {"gate": (".w1.", ".gate_proj."), "up": (".w3.", ".up_proj."), "down": (".w2.", ".down_proj.")}.items():
        single = {int(name.split(".experts.")[1].split(".")[0]): value for name, value in parts.items() if any(leaf in name for leaf in leaves)}
        if single:
            merged[part] = np.stack([single[index] for index in range(len(single))])
    return {f"blk.{layer}.ffn_{part}_exps.weight": value for part, value in merged.items()}


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def gpt_oss_experts(weights: dict[str, np.ndarray], layer: int) -> dict[str, np.ndarray]:
    """Experts of GPT-OSS, whose gate and up stand in turn, in full precision: the file's MXFP4 gives the same values again."""
    merged = {}
    for stem in ("gate_up_proj", "down_proj"):
        name = f"model.layers.{layer}.mlp.experts.{stem}"
        blocks, scales = (weights.pop(f"{name}_{leaf}").astype(np.int32) for leaf in ("blocks", "scales"))
        codes = np.stack([blocks & 15, blocks >> 4], axis=-1).reshape(*blocks.shape[:-1], 32)
        value = (E2M1[codes] * np.exp2(scales - 127.0)[..., None]).reshape(*blocks.shape[:2], -1).astype(np.float32)
        bias = weights.pop(f"{name}_bias")
        parts = {"down": (value, bias)} if stem == "down_proj" else {"gate": (value[:, 0::2], bias[:, 0::2]), "up": (value[:, 1::2], bias[:, 1::2])}
        for part, (matrix, vector) in parts.items():
            merged |= {f"blk.{layer}.ffn_{part}_exps.weight": matrix, f"blk.{layer}.ffn_{part}_exps.bias": vector}
    return merged


def read_checkpoint(name: str, architecture: str) -> tuple[dict, dict[str, np.ndarray]]:
    folder = FIXTURES / "models/checkpoints" / name
    config = json.loads((folder / "config.json").read_text())
    config.setdefault("rope_theta", config.get("rope_parameters", {}).get("rope_theta"))
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= {key: value.float().numpy() for key, value in load_file(file).items()}
    weights = reorder_recurrent(weights, config, architecture)
    experts = {}
    for layer in range(config["num_hidden_layers"]):
        # Gemma 4's stay as they are, gate above up.
        if architecture != "gemma4":
            experts |= gpt_oss_experts(weights, layer) if architecture == "gpt-oss" else merge_experts(weights, layer)
    if architecture in ("gemma2", "gemma3"):
        # The converter adds the 1 of (1 + weight), and Gemma's embeddings are its head.
        weights = {key: value + 1 if key.endswith("norm.weight") else value for key, value in weights.items() if key != "lm_head.weight"}
    named = {gguf_name(key, architecture): value for key, value in weights.items()} | experts
    stored = config["num_hidden_layers"]
    config["num_hidden_layers"] = NUM_LAYERS.get(architecture, stored)
    for layer in range(stored, config["num_hidden_layers"]):
        of_layer = f"blk.{layer % stored}."
        named |= {key.replace(of_layer, f"blk.{layer}."): value for key, value in named.items() if key.startswith(of_layer)}
    return config, named


def random_weights(architecture: str, seed: int, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    generator = torch.Generator().manual_seed(seed)
    size = 64 if kind == "Q4_0" else 256
    hidden, inner, heads, kv_heads, head_dim = size, size, 4, 2, size // 4

    def matrix(rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
        return (torch.randn(rows, columns, generator=generator) * gain / math.sqrt(columns)).numpy()

    def vector(length: int, mean: float, deviation: float) -> np.ndarray:
        return (mean + deviation * torch.randn(length, generator=generator)).numpy()

    tied = architecture not in ("llama", "qwen3moe")
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
        if architecture == "qwen3moe":
            for part in ("gate", "up", "down"):
                del block[f"ffn_{part}.weight"]
                block[f"ffn_{part}_exps.weight"] = np.stack([matrix(size, size) for _ in range(4)])
            block["ffn_gate_inp.weight"] = matrix(4, hidden, 2.0)
        if architecture.startswith("qwen3"):
            block |= {"attn_q_norm.weight": vector(head_dim, 1.0, 0.1), "attn_k_norm.weight": vector(head_dim, 1.0, 0.1)}
        weights |= {f"blk.{layer}.{name}": value for name, value in block.items()}
    mixture = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": inner} if architecture == "qwen3moe" else {}
    return WIDE | mixture | {"hidden_size": hidden, "intermediate_size": inner, "head_dim": head_dim}, weights


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
    if value.ndim == 1 or "conv1d" in name or "ffn_gate_inp" in name or name.endswith(".bias"):
        return "F32"
    if kind == "LOW_BITS":
        # every type has its turn; the embeddings stay precise, as llama.cpp keeps them
        return "Q6_K" if name == "token_embd.weight" else next(LOW_BIT_TURNS)
    if kind == "MXFP4_MOE":
        return "MXFP4" if "_exps" in name else "F16"
    if kind != "Q4_K_M":
        return kind
    precise = name in ("output.weight", "token_embd.weight") or name in ("blk.0.attn_v.weight", "blk.0.ffn_down.weight")
    return "Q6_K" if precise else "Q4_K"


def encode(value: np.ndarray, kind: str) -> np.ndarray:
    if kind in LOW_BITS:
        return random_blocks(value, kind)
    if kind not in ENCODERS:
        return gguf.quants.quantize(np.ascontiguousarray(value), Type[kind])
    data = ENCODERS[kind](value.astype(np.float32)).reshape(*value.shape[:-1], -1)
    decoded = gguf.quants.dequantize(data, Type[kind])
    error = np.abs(decoded - value).max() / np.abs(value).max()
    assert error < WORST_ERRORS.get(kind, 0.08), f"{kind}: decoding differs by {error:.3f} of the largest weight"
    return data


def write(file: str, architecture: str, source: str | int, kind: str) -> None:
    config, weights = read_checkpoint(source, architecture) if isinstance(source, str) else random_weights(architecture, source, kind)
    is_latent = "kv_lora_rank" in config
    writer = gguf.GGUFWriter(OUT / f"{file}.gguf", architecture)
    # llama.cpp expects Phi-3's own tokens of a model that is called so.
    writer.add_name(file.replace("phi3", "phi"))
    writer.add_file_type(FILE_TYPES[kind])
    writer.add_quantization_version(2)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config.get("intermediate_size_mlp", config["intermediate_size"]))
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(1 if is_latent else config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if config["rope_theta"] is not None:
        writer.add_rope_freq_base(config["rope_theta"])
    rotated = config["qk_rope_head_dim"] if is_latent else int(config["head_dim"] * config.get("rope_parameters", {}).get("partial_rotary_factor", 1))
    writer.add_rope_dimension_count(rotated)
    writer.add_key_length(config["kv_lora_rank"] + rotated if is_latent else config["head_dim"])
    writer.add_value_length(config["kv_lora_rank"] if is_latent else config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    add_family(writer, architecture, config)
    add_tokenizer(writer, architecture)
    if config.get("rope_scaling", {}).get("rope_type") == "llama3":
        weights["rope_freqs.weight"] = llama3_factors(config)
    if architecture == "gemma4":
        weights["rope_freqs.weight"] = proportional_factors(config)
    if architecture == "phi3":
        weights |= {"rope_factors_long.weight": np.array(LONG_FACTORS, np.float32), "rope_factors_short.weight": np.ones(8, np.float32)}
    for name, value in weights.items():
        if name.endswith("ffn_gate_inp_shexp.weight"):
            value = value.reshape(-1)
        if architecture in PERMUTED and "attn_q." in name:
            value = interleave(value, config["num_attention_heads"])
        if architecture in PERMUTED and "attn_k." in name:
            value = interleave(value, config["num_key_value_heads"])
        stored = type_of(name, value, kind)
        writer.add_tensor(name, encode(value, stored), raw_dtype=Type[stored])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{file}.gguf: {(OUT / f'{file}.gguf').stat().st_size} bytes")


def add_family(writer: gguf.GGUFWriter, architecture: str, config: dict) -> None:
    """The keys that an architecture's converter writes beside those of every file."""
    if experts := config.get("num_local_experts", config.get("num_experts")):
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config["top_k_experts"] if architecture == "gemma4" else config["num_experts_per_tok"])
    if "moe_intermediate_size" in config or architecture == "gpt-oss":
        writer.add_expert_feed_forward_length(config.get("moe_intermediate_size", config["intermediate_size"]))
    if architecture == "gpt-oss":
        writer.add_sliding_window(config["sliding_window"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(config["rope_scaling"]["factor"])
        # llama.cpp rounds the bounds of YaRN's ramp, OpenAI's and transformers' code do not; here the upper one is 1.996 of 2.
        writer.add_rope_scaling_orig_ctx_len(123)
    if "shared_expert_intermediate_size" in config:
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    add_recurrent(writer, architecture, config)
    if architecture.startswith("gemma"):
        writer.add_sliding_window(config["sliding_window"])
        writer.add_final_logit_softcapping(config.get("final_logit_softcapping", 0.0))
    if architecture == "gemma4":
        add_gemma4(writer, config)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
    if architecture == "gemma3":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config["rope_scaling"]["factor"])
    if architecture == "phi3":
        writer.add_sliding_window(0)
        writer.add_rope_scaling_orig_ctx_len(64)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(config["max_position_embeddings"] / 64) / math.log(64)))
    if architecture.startswith("granite"):
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])


def add_tokenizer(writer: gguf.GGUFWriter, architecture: str) -> None:
    folder = FIXTURES / "models/checkpoints/llama3"
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    by_id = {index: token for token, index in tokenizer["model"]["vocab"].items()} | special
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2" if architecture.startswith("qwen") else "llama-bpe")
    writer.add_token_list([by_id[index] for index in range(len(by_id))])
    writer.add_token_types([gguf.TokenType.CONTROL if index in special else gguf.TokenType.NORMAL for index in range(len(by_id))])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(269)
    writer.add_eos_token_id(270)
    writer.add_add_bos_token(False)
    writer.add_chat_template(json.loads((folder / "tokenizer_config.json").read_text())["chat_template"])


OUT.mkdir(parents=True, exist_ok=True)
for file, (architecture, source, kind) in FILES.items():
    if len(sys.argv) > 1 and file not in sys.argv[1:]:
        continue
    write(file, architecture, source, kind)
