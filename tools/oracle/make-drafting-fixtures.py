"""Tiny drafting heads and what they draft, by the published algorithms in PyTorch -> packages/artifacts/fixtures/drafting/.

`llama/` is a model of five layers and `eagle3/` a head for it, in SpecForge's layout. The `.safetensors` files are one layer each that
predicts further tokens, for the checkpoints of these names in `models/`. `<case>.json` has, for each prompt, the
model's greedy continuation and, behind each of its tokens, what the head drafts. All is computed anew for each token, in f32 and without
a cache. The algorithms: EAGLE-3 (arXiv 2503.01840), multi-token prediction (arXiv 2412.19437).
"""

import json
import math
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import linear, silu
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

FIXTURES = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures"
OUT = FIXTURES / "drafting"
VOCAB, DRAFT_VOCAB, HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM = 272, 160, 32, 64, 2, 1, 16
TAPS = [1, 2, 4]
GREEDY, DRAFTS = 16, 3
EPS, THETA = 1e-5, 10000.0


def drawn(shape: tuple[int, ...], name: str, generator: torch.Generator) -> torch.Tensor:
    values = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 1 + 0.1 * values
    if name.endswith(("bias", "embed_tokens.weight")):
        return values * (0.2 if name.endswith("bias") else 1.0)
    gain = 3.0 if "lm_head" in name or "shared_head.head" in name else 2.0 if "q_proj" in name or "k_proj" in name else 1.0
    return values * gain / math.sqrt(shape[-1])


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(0, 256, (length,), generator=generator).tolist() for length in (4, 21, 40)]


def norm(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + EPS) * weight


def rotated(values: torch.Tensor) -> torch.Tensor:
    """`[heads, positions, size]`, of which (i, i + size / 2) rotate together."""
    half = HEAD_DIM // 2
    angles = torch.arange(values.shape[1])[:, None] / THETA ** (torch.arange(half) / half)
    first, second = values[..., :half], values[..., half:]
    return torch.cat((first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()), dim=-1)


def eagle3(head: dict[str, torch.Tensor], embedding: torch.Tensor, states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states and logits of each position, of the (fused) states before and the tokens behind."""
    def of(name: str) -> torch.Tensor:
        return head[f"midlayer.{name}.weight"]

    both = torch.cat((norm(embedding[tokens], of("input_layernorm")), norm(states, of("hidden_norm"))), dim=-1)
    q, k, v = (linear(both, of(f"self_attn.{part}_proj")).unflatten(-1, (-1, HEAD_DIM)).transpose(0, 1) for part in "qkv")
    k, v = (part.repeat_interleave(HEADS // KV_HEADS, dim=0) for part in (rotated(k), v))
    scores = rotated(q) @ k.transpose(1, 2) / math.sqrt(HEAD_DIM)
    scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
    attended = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    stream = states + linear(attended, of("self_attn.o_proj"))
    inner = norm(stream, of("post_attention_layernorm"))
    stream = stream + linear(silu(linear(inner, of("mlp.gate_proj"))) * linear(inner, of("mlp.up_proj")), of("mlp.down_proj"))
    return stream, linear(norm(stream, head["norm.weight"]), head["lm_head.weight"])


class Margins:
    """The smallest distance between a choice and the next best, so that rounding decides none."""

    def __init__(self) -> None:
        self.least = math.inf

    def best(self, logits: torch.Tensor) -> int:
        (first, second), (token, _) = logits.topk(2)
        self.least = min(self.least, float(first - second))
        return int(token)


def write_case(name: str, model, states_of, step, to_target) -> None:
    """`states_of` gives what the head reads of the model's output; `step` is one pass of the head."""
    cases, margins = [], Margins()
    for prompt in prompts():
        tokens, drafts = list(prompt), []
        for count in range(GREEDY + 1):
            output = model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
            if count > 0:
                states, behind = states_of(output)[: len(tokens) - 1], tokens[1:]
                drafts.append([])
                for _ in range(DRAFTS):
                    hidden, logits = step(states, torch.tensor(behind))
                    token = to_target(margins.best(logits[-1]))
                    drafts[-1].append(token)
                    states, behind = torch.cat((states, hidden[-1:])), [*behind, token]
            tokens.append(margins.best(output.logits[0, -1]))
        cases.append({"prompt": prompt, "greedy": tokens[len(prompt) :][:GREEDY], "drafts": drafts})
    (OUT / f"{name}.json").write_text(json.dumps(cases) + "\n")
    print(f"{name}: least margin {margins.least:.4f}")


def make_eagle3() -> None:
    generator = torch.Generator().manual_seed(31)
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=5, num_attention_heads=HEADS,
                         num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM, rms_norm_eps=EPS, max_position_embeddings=512, bos_token_id=269,
                         eos_token_id=270, tie_word_embeddings=False, attn_implementation="eager")
    model = LlamaForCausalLM(config).eval()
    model.load_state_dict({name: drawn(tuple(value.shape), name, generator) for name, value in sorted(model.state_dict().items())})
    (OUT / "llama").mkdir(parents=True)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(FIXTURES / "models/checkpoints/llama3" / file, OUT / "llama")
    common = {"vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "rms_norm_eps": EPS, "rope_theta": THETA, "max_position_embeddings": 512,
              "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 269, "eos_token_id": 270, "torch_dtype": "float32"}
    write_json(OUT / "llama/config.json", {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 5, **common})
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, OUT / "llama/model.safetensors")

    shapes = {"fc.weight": (HIDDEN, 3 * HIDDEN), "norm.weight": (HIDDEN,), "lm_head.weight": (DRAFT_VOCAB, HIDDEN)}
    layer = {"input_layernorm": (HIDDEN,), "hidden_norm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,),
             "self_attn.q_proj": (HEADS * HEAD_DIM, 2 * HIDDEN), "self_attn.k_proj": (KV_HEADS * HEAD_DIM, 2 * HIDDEN),
             "self_attn.v_proj": (KV_HEADS * HEAD_DIM, 2 * HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
             "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER)}
    shapes.update({f"midlayer.{name}.weight": shape for name, shape in layer.items()})
    head = {name: drawn(shape, name, generator) for name, shape in shapes.items()}
    known = torch.randperm(VOCAB, generator=generator)[:DRAFT_VOCAB].sort().values
    d2t = known - torch.arange(DRAFT_VOCAB)
    (OUT / "eagle3").mkdir()
    t2d = torch.zeros(VOCAB, dtype=torch.bool).index_fill(0, known, True)
    save_file({**head, "d2t": d2t, "t2d": t2d}, OUT / "eagle3/model.safetensors")
    write_json(OUT / "eagle3/config.json", {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "num_hidden_layers": 1,
               "draft_vocab_size": DRAFT_VOCAB, "eagle_config": {"eagle_aux_hidden_state_layer_ids": TAPS}, **common})
    embedding = model.get_input_embeddings().weight

    def fused(output) -> torch.Tensor:
        return linear(torch.cat([output.hidden_states[layer][0] for layer in TAPS], dim=-1), head["fc.weight"])

    write_case("eagle3", model, fused, lambda states, tokens: eagle3(head, embedding, states, tokens), lambda token: int(known[token]))


def make_mtp(name: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(FIXTURES / "models/checkpoints" / name, dtype=torch.float32, attn_implementation="eager").eval()
    config, prefix = model.config, f"model.layers.{model.config.num_hidden_layers}."
    hidden = config.hidden_size
    # The model's last layer has the shapes of the one behind it; here are its names in the checkpoint.
    tensors = load_file(FIXTURES / "models/checkpoints" / name / "model.safetensors")
    last = f"model.layers.{config.num_hidden_layers - 1}."
    shapes = {key.removeprefix(last): tuple(value.shape) for key, value in sorted(tensors.items()) if key.startswith(last)}
    shapes.update({"enorm.weight": (hidden,), "hnorm.weight": (hidden,), "eh_proj.weight": (hidden, 2 * hidden), "shared_head.norm.weight": (hidden,)})
    layer = {key: drawn(shape, key, generator) for key, shape in shapes.items()}
    save_file({prefix + key: value for key, value in layer.items()}, OUT / f"{name}.safetensors")

    # transformers drops the layer, so its weights take the place of the last one's in a second model of that one layer's kind.
    folder = OUT / "scratch"
    shutil.copytree(FIXTURES / "models/checkpoints" / name, folder)
    save_file({**tensors, **{last + key: value for key, value in layer.items() if last + key in tensors}}, folder / "model.safetensors", {"format": "pt"})
    other = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    shutil.rmtree(folder)
    block, embedding, head = other.model.layers[-1], model.get_input_embeddings().weight, model.lm_head.weight

    def rms(values: torch.Tensor, key: str) -> torch.Tensor:
        return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps) * layer[key]

    def step(states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat((rms(embedding[tokens], "enorm.weight"), rms(states, "hnorm.weight")), dim=-1)
        stream = linear(both, layer["eh_proj.weight"])[None]
        positions = torch.arange(len(tokens))[None]
        mask = torch.full((1, 1, len(tokens), len(tokens)), -torch.inf).triu(1)
        out = block(stream, attention_mask=mask, position_ids=positions, position_embeddings=other.model.rotary_emb(stream, positions), use_cache=False)
        out = (out[0] if isinstance(out, tuple) else out)[0]
        return out, linear(rms(out, "shared_head.norm.weight"), head)

    write_case(name, model, lambda output: output.hidden_states[-1][0], step, lambda token: token)


def make_mtp_beside(name: str, seed: int) -> None:
    """As Qwen3-Next has it: a layer of attention under names of its own, whose normalised output goes on; norms multiply by 1 + weight."""
    generator = torch.Generator().manual_seed(seed)
    folder = FIXTURES / "models/checkpoints" / name
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    config, hidden = model.config, model.config.hidden_size
    tensors = load_file(folder / "model.safetensors")
    last = f"model.layers.{config.num_hidden_layers - 1}."
    shapes = {f"layers.0.{key.removeprefix(last)}": tuple(value.shape) for key, value in sorted(tensors.items()) if key.startswith(last)}
    shapes.update({"pre_fc_norm_embedding.weight": (hidden,), "pre_fc_norm_hidden.weight": (hidden,), "fc.weight": (hidden, 2 * hidden), "norm.weight": (hidden,)})
    layer = {key: drawn(shape, key, generator) - (1 if key.endswith("norm.weight") else 0) for key, shape in shapes.items()}
    save_file({f"mtp.{key}": value for key, value in layer.items()}, OUT / f"{name}.safetensors")

    # transformers has no such layer; its weights take the place of the last one's, which attends too, in a second model.
    scratch = OUT / "scratch"
    shutil.copytree(folder, scratch)
    save_file({**tensors, **{key.replace("layers.0.", last): value for key, value in layer.items() if key.startswith("layers.0.")}}, scratch / "model.safetensors", {"format": "pt"})
    other = AutoModelForCausalLM.from_pretrained(scratch, dtype=torch.float32, attn_implementation="eager").eval()
    shutil.rmtree(scratch)
    block, embedding, head = other.model.layers[-1], model.get_input_embeddings().weight, model.lm_head.weight

    def rms(values: torch.Tensor, key: str) -> torch.Tensor:
        return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps) * (1 + layer[key])

    def step(states: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat((rms(embedding[tokens], "pre_fc_norm_embedding.weight"), rms(states, "pre_fc_norm_hidden.weight")), dim=-1)
        stream = linear(both, layer["fc.weight"])[None]
        positions = torch.arange(len(tokens))[None]
        mask = torch.full((1, 1, len(tokens), len(tokens)), -torch.inf).triu(1)
        out = block(stream, attention_mask=mask, position_ids=positions, position_embeddings=other.model.rotary_emb(stream, positions), use_cache=False)
        out = rms((out[0] if isinstance(out, tuple) else out)[0], "norm.weight")
        return out, linear(out, head)

    write_case(name, model, lambda output: output.hidden_states[-1][0], step, lambda token: token)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    with torch.no_grad():
        make_eagle3()
        make_mtp("glm4-moe", 41)
        make_mtp("deepseek-v3", 43)
        make_mtp_beside("qwen3-next", 47)
        make_mtp_beside("qwen3-5", 53)
