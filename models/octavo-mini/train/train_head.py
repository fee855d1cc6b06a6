"""Trains an EAGLE-3 head that drafts for the exported model, within a time budget, and writes it in SpecForge's layout.

As arXiv 2503.01840 says: three hidden states of the model, fused; one layer over them and the token behind; further tokens from the
head's own states, in training too ("training-time test"). The loss is the cross entropy with what the model itself would say, where
the assistant speaks. Embedding and output head are the model's and stay with it.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from torch.nn import functional as F
from transformers import AutoModelForCausalLM

from muon import Muon
from rendering import MODEL_FOLDER

TAPS = (1, 3, 5)
HEADS, KV_HEADS, INNER = 2, 1, 160
WARM_UP, DECAY = 0.02, 0.5
LATER = 0.8
"""The weight of each further draft token, as a share of the one before."""


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", help="folder that prepare.py wrote")
    arguments.add_argument("--out", default=str(MODEL_FOLDER / "eagle3"))
    arguments.add_argument("--minutes", type=float, required=True)
    arguments.add_argument("--drafts", type=int, default=4, help="draft tokens in a row")
    arguments.add_argument("--batch-tokens", type=int, default=3072)
    arguments.add_argument("--least-spoken", type=float, default=0.2, help="share of a conversation that the assistant says")
    arguments.add_argument("--muon-rate", type=float, default=0.02)
    arguments.add_argument("--adam-rate", type=float, default=0.005)
    arguments.add_argument("--threads", type=int, default=2)
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(MODEL_FOLDER, dtype=torch.float32).eval().requires_grad_(False)
    head = Head(model)
    parameters = list(head.weights.values())
    matrices = [one for one in parameters if one.dim() == 2]
    optimizers = [
        (Muon(matrices, lr=options.muon_rate), options.muon_rate),
        (torch.optim.AdamW([one for one in parameters if one.dim() == 1], lr=options.adam_rate, betas=(0.9, 0.95), weight_decay=0.0), options.adam_rate),
    ]
    print(f"{sum(one.numel() for one in parameters) / 1e6:.2f} M parameters", flush=True)
    batches = Batches(options.data, options.batch_tokens, options.least_spoken)
    began, step, right, seen = time.monotonic(), 0, torch.zeros(options.drafts), torch.zeros(options.drafts)
    while (progress := (time.monotonic() - began) / 60 / options.minutes) < 1:
        factor = min(1, 0.02 + progress / WARM_UP, (1 - progress) / DECAY)
        for optimizer, rate in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
        loss, hits, count = head.losses(*batches.next(), options.drafts)
        loss.backward()
        right, seen = right + hits, seen + count
        for optimizer, _ in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        if step % 25 == 0:
            print(f"step {step} {progress:.1%} loss {loss.item():.3f} right {(right / seen).numpy().round(3)}", flush=True)
            right, seen = torch.zeros(options.drafts), torch.zeros(options.drafts)
    head.save(Path(options.out))


class Batches:
    """Conversations of like length, padded; the longest first within a pool, pools in order."""

    def __init__(self, folder, batch_tokens, least):
        folder = Path(folder)
        self.tokens, self.spoken = numpy.load(folder / "tokens.npy"), numpy.load(folder / "spoken.npy")
        self.starts, self.batch_tokens = numpy.load(folder / "starts.npy"), batch_tokens
        self.least = least
        self.random = numpy.random.default_rng(1)
        self.left = []

    def next(self):
        if not self.left:
            lengths = numpy.diff(self.starts)
            order = numpy.argsort(lengths + self.random.random(len(lengths)), kind="stable")
            # What is not spoken costs as much and teaches nothing.
            said = numpy.add.reduceat(self.spoken, self.starts[:-1], dtype=numpy.int64)
            order = order[(said >= self.least * lengths)[order]]
            batch = []
            for index in order:
                if batch and (len(batch) + 1) * lengths[index] > self.batch_tokens:
                    self.left.append(batch)
                    batch = []
                batch.append(index)
            self.left.append(batch)
            self.random.shuffle(self.left)
        batch = self.left.pop()
        length = max(self.starts[index + 1] - self.starts[index] for index in batch)
        ids = torch.zeros(len(batch), length, dtype=torch.long)
        spoken = torch.zeros(len(batch), length, dtype=torch.bool)
        for row, index in enumerate(batch):
            first, last = self.starts[index], self.starts[index + 1]
            ids[row, : last - first] = torch.from_numpy(self.tokens[first:last].astype(numpy.int64))
            spoken[row, : last - first] = torch.from_numpy(self.spoken[first:last])
        return ids, spoken


class Head:
    def __init__(self, model):
        self.model, self.config = model, model.config
        hidden, size = self.config.hidden_size, self.config.head_dim
        queries, keys = HEADS * size, KV_HEADS * size
        shapes = {"fc": (hidden, 3 * hidden), "midlayer.self_attn.q_proj": (queries, 2 * hidden), "midlayer.self_attn.k_proj": (keys, 2 * hidden),
                  "midlayer.self_attn.v_proj": (keys, 2 * hidden), "midlayer.self_attn.o_proj": (hidden, queries), "midlayer.mlp.gate_proj": (INNER, hidden),
                  "midlayer.mlp.up_proj": (INNER, hidden), "midlayer.mlp.down_proj": (hidden, INNER)}
        self.weights = {name: torch.randn(shape) / math.sqrt(shape[1]) for name, shape in shapes.items()}
        for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
            self.weights[f"midlayer.{name}"] = torch.ones(hidden)
        self.weights["norm"] = model.model.norm.weight.clone()
        for weight in self.weights.values():
            weight.requires_grad_(True)

    def norm(self, values, name):
        return F.rms_norm(values, values.shape[-1:], self.weights[name], self.config.rms_norm_eps)

    def linear(self, values, name):
        return F.linear(values, self.weights[f"midlayer.{name}"])

    def losses(self, ids, spoken, drafts):
        """Of all draft tokens behind each place where the assistant speaks; `right` where the head's best is the model's."""
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            output = self.model.model(ids, output_hidden_states=True, use_cache=False)
            taps = torch.cat([output.hidden_states[layer] for layer in TAPS], dim=-1)
            embedded = self.model.get_input_embeddings()(ids)
        batch, length = ids.shape
        # A draft begins behind token n + 1, the state of token n at hand; places beyond the end are never spoken.
        later = F.pad(spoken, (0, drafts + 2))
        behind = F.pad(embedded, (0, 0, 0, drafts + 2))
        hidden = F.pad(output.last_hidden_state, (0, 0, 0, drafts + 2))
        rows, places = (later[:, 1 : length + 1] & later[:, 2 : length + 2]).nonzero(as_tuple=True)
        with torch.autocast("cpu", torch.bfloat16):
            fused = F.linear(taps, self.weights["fc"])
            every = torch.arange(length)
            _, k, v = self.projected(behind[:, 1 : 1 + length], fused, every[None])
            attention = DraftAttention(k, v, rows, places)
            states, loss, hits, counts = fused[rows, places], 0, [], []
            for draft in range(drafts):
                q, k, v = self.projected(behind[rows, places + draft + 1], states, places + draft)
                stream = states + self.linear(attention.read(q, k, v, draft), "self_attn.o_proj")
                inner = self.norm(stream, "midlayer.post_attention_layernorm")
                states = stream + self.linear(F.silu(self.linear(inner, "mlp.gate_proj")) * self.linear(inner, "mlp.up_proj"), "mlp.down_proj")
                said = later[rows, places + draft + 2]
                logits = self.model.lm_head(self.norm(states[said], "norm")).float()
                with torch.no_grad():
                    targets = self.model.lm_head(hidden[rows[said], places[said] + draft + 1]).float()
                loss = loss + LATER**draft * F.cross_entropy(logits, targets.softmax(-1)) if said.any() else loss
                hits.append((logits.argmax(-1) == targets.argmax(-1)).sum())
                counts.append(said.sum())
        return loss, torch.stack(hits), torch.stack(counts)

    def projected(self, embedded, states, positions):
        """Queries, keys and values `[..., heads, size]`, rotated."""
        both = torch.cat((self.norm(embedded, "midlayer.input_layernorm"), self.norm(states, "midlayer.hidden_norm")), dim=-1)
        q, k, v = (self.linear(both, f"self_attn.{part}_proj").unflatten(-1, (-1, self.config.head_dim)) for part in "qkv")
        return rotated(q, positions, self.config), rotated(k, positions, self.config), v

    def save(self, out):
        config = self.config
        out.mkdir(parents=True, exist_ok=True)
        save_file({f"{name}.weight": weight.detach().to(torch.bfloat16).contiguous() for name, weight in self.weights.items()}, out / "model.safetensors")
        written = {
            "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": config.vocab_size, "draft_vocab_size": config.vocab_size,
            "hidden_size": config.hidden_size, "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS, "head_dim": config.head_dim, "rms_norm_eps": config.rms_norm_eps,
            "rope_theta": config.rope_parameters["rope_theta"], "max_position_embeddings": config.max_position_embeddings, "hidden_act": "silu",
            "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(TAPS), "use_aux_hidden_state": True},
        }
        (out / "config.json").write_text(json.dumps(written, indent=2) + "\n")


class DraftAttention:
    """A draft token meets the states that the model gave up to where its draft began, and the draft tokens since."""

    def __init__(self, keys, values, rows, places):
        """`keys` and `values` `[batch, length, kv heads, size]`; drafts begin at `places` of `rows`."""
        self.keys, self.values, self.rows, self.places = keys, values, rows, places
        batch, length = keys.shape[:2]
        # All drafts of a text side by side, padded.
        self.among = torch.cat([torch.arange(count) for count in torch.bincount(rows, minlength=batch)])
        self.shape = (batch, int(self.among.max()) + 1 if len(self.among) else 0)
        begun = torch.full(self.shape, length - 1)
        begun[rows, self.among] = places
        self.mask = (torch.arange(length) > begun[..., None])[:, None]
        self.own = []

    def read(self, q, k, v, draft):
        """Of each draft its token's `[heads, size]`; with the first, keys and values are those that the texts have."""
        if draft > 0:
            self.own.append((k, v))
        group = q.shape[1] // k.shape[1]
        q = q * q.shape[-1] ** -0.5
        side = q.new_zeros(*self.shape, *q.shape[1:]).index_put((self.rows, self.among), q)
        keys, values = (part.repeat_interleave(group, dim=2).transpose(1, 2) for part in (self.keys, self.values))
        scores = (side.transpose(1, 2) @ keys.transpose(2, 3)).float().masked_fill(self.mask, -torch.inf)
        own = [(q * key.repeat_interleave(group, dim=1)).sum(-1).float() for key, _ in self.own]
        most = torch.stack([scores.amax(-1).transpose(1, 2)[self.rows, self.among], *own]).amax(0).detach()
        least = scores.new_zeros(*self.shape, q.shape[1]).index_put((self.rows, self.among), most)
        shares = (scores - least.transpose(1, 2)[..., None]).exp()
        attended = (shares.to(values.dtype) @ values).transpose(1, 2)[self.rows, self.among].float()
        total = shares.sum(-1).transpose(1, 2)[self.rows, self.among]
        for score, (_, value) in zip(own, self.own):
            share = (score - most).exp()
            attended, total = attended + share[..., None] * value.repeat_interleave(group, dim=1), total + share
        return (attended / total[..., None]).flatten(1)


def rotated(values, positions, config):
    half = config.head_dim // 2
    angles = positions[..., None, None] / config.rope_parameters["rope_theta"] ** (torch.arange(half) / half)
    first, second = values.float().chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(values.dtype)


if __name__ == "__main__":
    main()
