"""The Qwen3 architecture with the checkpoint's own parameter names, written for fast training."""

import json
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional as F

from attention import block_attention


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int = 4096
    hidden_size: int = 256
    intermediate_size: int = 768
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rms_norm_eps: float = 1e-6
    rope_theta: float = 100000.0
    max_position_embeddings: int = 8192
    initializer_range: float = 0.02

    @staticmethod
    def load(path):
        known = ModelConfig.__dataclass_fields__
        with open(path) as file:
            return ModelConfig(**{key: value for key, value in json.load(file).items() if key in known})

    def checkpoint_config(self, tokens):
        """config.json as transformers reads it."""
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            **asdict(self),
            "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "tie_word_embeddings": True,
            "use_cache": True,
            "use_sliding_window": False,
            "sliding_window": None,
            "rope_scaling": None,
            "torch_dtype": "bfloat16",
            **tokens,
        }


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (scaled * self.weight.float()).to(x.dtype)


def rotary_tables(config, length, device):
    frequencies = config.rope_theta ** (-torch.arange(0, config.head_dim, 2, device=device).float() / config.head_dim)
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x: [batch, heads, length, head_dim]; halves are rotated against each other."""
    first, second = x.chunk(2, dim=-1)
    return (x * cos + torch.cat([-second, first], dim=-1) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width = config.num_attention_heads * config.head_dim
        kv_width = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(self, x, cos, sin, cache=None):
        batch, length, _ = x.shape
        heads = lambda y: y.view(batch, length, -1, self.config.head_dim)
        q = rotate(self.q_norm(heads(self.q_proj(x))).transpose(1, 2), cos, sin)
        k = rotate(self.k_norm(heads(self.k_proj(x))).transpose(1, 2), cos, sin)
        v = heads(self.v_proj(x)).transpose(1, 2)
        fresh = cache is None or not cache
        if cache is not None:
            if cache:
                k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
            cache["k"], cache["v"] = k, v
        out = attend(q, k, v, causal=fresh and length > 1)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


def attend(q, k, v, causal):
    if causal and q.device.type == "cpu" and torch.is_grad_enabled():
        return block_attention(q, k, v)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x, cos, sin, cache=None):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Qwen3(nn.Module):
    """Padding goes to the right: causal attention keeps it from the tokens that count."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Body(config)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                out = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=config.initializer_range / ((2 * config.num_hidden_layers) ** 0.5 if out else 1))

    def hidden(self, ids, position=0, caches=None):
        """ids: [batch, length] int64 → [batch, length, hidden_size]."""
        cos, sin = rotary_tables(self.config, position + ids.shape[1], ids.device)
        cos, sin = cos[position:], sin[position:]
        x = self.model.embed_tokens(ids)
        for i, layer in enumerate(self.model.layers):
            x = layer(x, cos, sin, caches[i] if caches is not None else None)
        return self.model.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.model.embed_tokens.weight.to(hidden.dtype))
