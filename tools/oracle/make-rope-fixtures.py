"""Inverse frequencies and attention factors of transformers' RoPE variants -> packages/artifacts/fixtures/rope.json.

Dynamic NTK is evaluated at its full extended length (factor * original length): a serving engine needs frequencies
that do not move while a sequence grows, and that is the length vLLM fixes them at.
"""

import json
from pathlib import Path

import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/rope.json"

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}

CASES = [
    ("plain", 128, 10000.0, 4096, {"rope_type": "default"}),
    ("plain, large theta", 64, 1000000.0, 32768, {"rope_type": "default"}),
    ("linear", 128, 10000.0, 4096, {"rope_type": "linear", "factor": 4.0}),
    ("dynamic", 128, 10000.0, 4096, {"rope_type": "dynamic", "factor": 2.0}),
    ("dynamic, partial", 96, 10000.0, 2048, {"rope_type": "dynamic", "factor": 8.0, "partial_rotary_factor": 0.5}),
    ("llama3 of Llama 3.1", 128, 500000.0, 131072, LLAMA3),
    ("llama3 of Llama 3.2", 64, 500000.0, 131072, {**LLAMA3, "factor": 32.0}),
    ("llama3 of Llama 4 Scout", 128, 500000.0, 10485760, {**LLAMA3, "factor": 16.0, "high_freq_factor": 1.0}),
    ("yarn of Qwen 2.5", 128, 1000000.0, 131072, YARN),
    ("yarn, own betas", 128, 10000.0, 131072, {**YARN, "factor": 40.0, "original_max_position_embeddings": 4096, "beta_fast": 24.0, "beta_slow": 2.0}),
    ("yarn, attention factor", 64, 10000.0, 65536, {**YARN, "attention_factor": 0.75}),
    ("yarn, mscale", 64, 10000.0, 163840, {**YARN, "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 0.7}),
    ("yarn, equal mscales", 64, 10000.0, 163840, {**YARN, "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}),
    ("yarn, not truncated", 64, 150000.0, 131072, {**YARN, "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False}),
    ("yarn, partial", 128, 10000.0, 131072, {**YARN, "partial_rotary_factor": 0.25}),
    ("partial", 80, 10000.0, 4096, {"rope_type": "default", "partial_rotary_factor": 0.25}),
]


def plain(head_dim: int, theta: float, parameters: dict) -> torch.Tensor:
    """The unscaled rule, which transformers keeps in each model instead of in its table."""
    dim = int(head_dim * parameters.get("partial_rotary_factor", 1.0))
    return 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))


def evaluate(name: str, head_dim: int, theta: float, max_positions: int, parameters: dict) -> dict:
    if parameters["rope_type"] == "default":
        frequencies, attention = plain(head_dim, theta, parameters), 1.0
    else:
        config = LlamaConfig(
            hidden_size=head_dim * 4, num_attention_heads=4, head_dim=head_dim, max_position_embeddings=max_positions,
            rope_parameters={"rope_theta": theta, **parameters},
        )
        length = int(max_positions * parameters["factor"]) if parameters["rope_type"] == "dynamic" else None
        frequencies, attention = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, torch.device("cpu"), seq_len=length)
    return {
        "name": name, "headDim": head_dim, "theta": theta, "maxPositions": max_positions, "parameters": parameters,
        "attentionFactor": attention, "inverseFrequencies": frequencies.to(torch.float32).tolist(),
    }


OUT.parent.mkdir(parents=True, exist_ok=True)
OUT.write_text("[\n" + ",\n".join(json.dumps(evaluate(*case)) for case in CASES) + "\n]\n")
print(f"{OUT}: {len(CASES)} cases")
