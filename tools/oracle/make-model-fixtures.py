"""Tiny random checkpoints and what transformers computes from them -> packages/artifacts/fixtures/models/.

`checkpoints/<name>/` is a Hugging Face folder; `<case>.json` beside it names a checkpoint, the config changes of the
case, a prompt, the greedy continuation, pooled hidden states, and a long prompt with the logits after its last token;
`<case>.logits` is f32 `[prompt, vocab]`.
Everything is computed in f32 with eager attention and no KV cache. Cases that differ only in their configuration
share one checkpoint. Names of checkpoints as arguments make those alone anew.
"""

import copy
import json
import math
import shutil
import sys
from pathlib import Path

import torch
import transformers
from hybrids import HYBRID_SEEDS, HYBRIDS, draw_recurrent
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM

from model_configs import BOS, CASES, CHECKPOINTS, END, GREEDY_TOKENS, HIDDEN, LONG_PROMPT_TOKENS, PROMPT_TOKENS, SPECIAL, TURN, VOCAB

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/models"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|turn|>' + message['role'] + '\n' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|turn|>assistant\n' }}{% endif %}"
)
CORPUS = ["the cat and the dog sat in the garden and then they went to the other house", "over and over, the end"]

RECURRENT_TYPES = {config["model_type"] for config, _, _ in HYBRIDS.values()}


def make_tokenizer() -> Tokenizer:
    """Byte-level BPE: 256 bytes, 13 merges, three special tokens at the end."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    assert [tokenizer.token_to_id(token) for token in SPECIAL] == [BOS, END, TURN]
    return tokenizer


def draw(shape: torch.Size, name: str, tied: bool, generator: torch.Generator, family: str) -> torch.Tensor:
    """Scales that keep attention sharp and the logits spread, so that greedy choices have clear margins.

    Tied models get small embeddings and large residual updates: they would repeat the last token otherwise. Gemma scales its
    embeddings by sqrt(hidden size) and normalises the updates, and its norms multiply by 1 + weight.
    """
    values = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 1 + 0.1 * values if family != "gemma" else 0.1 * values
    if name.endswith(".sinks"):
        return values
    if name.endswith((".bias", "_bias")):
        return 0.2 * values
    if name == "model.embed_tokens.weight":
        return values * (0.12 if family == "gemma" else 0.4 if tied else 1.0)
    gain = 3.0 if name == "lm_head.weight" else 2.0 if "q_proj" in name or "k_proj" in name else 1.0
    if tied and name.endswith(("o_proj.weight", "down_proj.weight", "down_proj", "out_proj.weight", "w2.weight")):
        gain = 4.0
    if name.endswith(("mlp.gate.weight", "router.weight")):
        gain = 2.0
    # GPT-OSS's experts stand transposed.
    return values * gain / math.sqrt(shape[1] if family == "gpt_o" and len(shape) == 3 else shape[-1])


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def to_mxfp4(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Experts `[count, in, out]` as blocks and scales of `[count, out, in]`, and the values that those stand for."""
    groups = value.transpose(1, 2).unflatten(-1, (-1, 32))
    exponents = torch.floor(torch.log2(groups.abs().amax(dim=-1))) - 1
    scaled = groups / 2 ** exponents[..., None]
    codes = (scaled[..., None] - E2M1).abs().argmin(dim=-1)
    blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8)
    rounded = (E2M1[codes] * 2 ** exponents[..., None]).flatten(-2).transpose(1, 2)
    return blocks, (exponents + 127).to(torch.uint8), rounded.contiguous()


def published(model_type: str, name: str, value: torch.Tensor) -> dict[str, torch.Tensor]:
    """A tensor of transformers' module under the names, and in the pieces, that checkpoints of the family have on the hub."""
    if model_type.startswith("granitemoe"):
        renamed = {"experts.gate_up_proj": "input_linear.weight", "experts.down_proj": "output_linear.weight", "router.weight": "router.layer.weight"}
        for inside, outside in renamed.items():
            name = name.replace(f"block_sparse_moe.{inside}", f"block_sparse_moe.{outside}")
        return {name: value}
    if model_type == "nemotron_h":
        name = name.replace("model.", "backbone.", 1) if name.startswith("model.") else name
        stem, _, part = name.partition(".experts.")
        return {f"{stem}.experts.{index}.{part}.weight": expert for index, expert in enumerate(value)} if value.ndim == 3 and part else {name: value}
    if name.endswith(".mlp.e_score_correction_bias"):
        name = name.replace(".mlp.", ".block_sparse_moe.")
    name = name.replace("mlp.gate.moe_statics.", "mlp.moe_statics.")
    if model_type == "lfm2_moe" and ".experts." in name:
        stem, part = name.split(".experts.")
        pieces = [("w1", "w3"), ("w2",)][part == "down_proj"]
        return {f"{stem}.experts.{index}.{leaf}.weight": half for index, expert in enumerate(value) for leaf, half in zip(pieces, expert.chunk(len(pieces)))}
    block, gate, up, down = ("block_sparse_moe", "w1", "w3", "w2") if model_type in ("mixtral", "minimax_m2") else ("mlp", "gate_proj", "up_proj", "down_proj")
    stem = name.split(".mlp.")[0] + f".{block}.experts"
    if model_type == "olmoe" or ".mlp.experts." not in name:
        return {name.replace(".mlp.gate.", f".{block}.gate."): value}
    if name.endswith("down_proj"):
        return {f"{stem}.{index}.{down}.weight": expert for index, expert in enumerate(value)}
    pairs = [(f"{stem}.{index}.{part}.weight", half) for index, expert in enumerate(value) for part, half in zip((gate, up), expert.chunk(2))]
    return dict(pairs)


def weights_of(config: dict, seed: int) -> dict[str, torch.Tensor]:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(hf_config(config))
    generator = torch.Generator().manual_seed(seed)
    tied = config["tie_word_embeddings"]
    names = sorted(name for name in model.state_dict() if not (tied and name == "lm_head.weight"))
    model_type = config["model_type"]

    def drawn(name: str) -> torch.Tensor:
        shape = model.state_dict()[name].shape
        if model_type in RECURRENT_TYPES:
            state = generator.get_state()
            if (values := draw_recurrent(name, torch.randn(shape, generator=generator), model_type)) is not None:
                return values
            generator.set_state(state)
        return draw(shape, name, tied, generator, model_type[:5])

    return {name: drawn(name) for name in names}


def hf_config(config: dict) -> transformers.PretrainedConfig:
    config = {key: value for key, value in copy.deepcopy(config).items() if (value is not None or key in ("sliding_window", "q_lora_rank")) and key != "quantization_config"}
    return AutoConfig.for_model(config.pop("model_type"), **config, attn_implementation="eager")


def save_checkpoint(folder: Path, config: dict, dtype: torch.dtype, shard_bytes: int | None, seed: int) -> dict[str, torch.Tensor]:
    folder.mkdir(parents=True)
    weights = {name: value.to(dtype).contiguous() for name, value in weights_of(config, seed).items()}
    if shard_bytes is None:
        pieces = {}
        for name, value in weights.items():
            if config.get("quantization_config") and value.ndim == 3:
                pieces[f"{name}_blocks"], pieces[f"{name}_scales"], weights[name] = to_mxfp4(value)
            elif config["model_type"] == "gpt_oss":
                pieces[name] = value
            else:
                pieces |= published(config["model_type"], name, value)
        save_file({name: value.contiguous() for name, value in pieces.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        save_shards(folder, weights, shard_bytes)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"bos_token_id": BOS, "eos_token_id": config["eos_token_id"], "do_sample": True, "temperature": 0.7, "top_p": 0.9, "top_k": 20}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    make_tokenizer().save(str(folder / "tokenizer.json"), pretty=False)
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[0], "eos_token": SPECIAL[1], "add_bos_token": False,
        "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=2) + "\n")
    return {name: value.float() for name, value in weights.items()}


def save_shards(folder: Path, weights: dict[str, torch.Tensor], shard_bytes: int) -> None:
    shards, size = [{}], 0
    for name, value in weights.items():
        if shards[-1] and size + value.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = value
        size += value.nbytes
    weight_map = {}
    for index, shard in enumerate(shards, 1):
        file = f"model-{index:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(shard, file)
    total = sum(value.nbytes for value in weights.values())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2) + "\n")


def rotate_part(query, key, cos, sin, unsqueeze_dim=1):
    """Partial rotary as in the families that have it (StableLM, Phi): the rest of each head passes through."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    width = cos.shape[-1]

    def apply(x):
        turned, rest = x[..., :width], x[..., width:]
        half = torch.cat((-turned[..., width // 2 :], turned[..., : width // 2]), dim=-1)
        return torch.cat((turned * cos + half * sin, rest), dim=-1)

    return apply(query), apply(key)


def build(config: dict, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
    settings = dict(config)
    scaling = settings.get("rope_scaling") or {}
    if scaling.get("type") == "dynamic":
        # Fixed at the full extended length, as a serving engine must: the same rule with a larger theta.
        factor, dim = scaling["factor"], HIDDEN // settings["num_attention_heads"]
        settings["rope_theta"] *= (factor * factor - (factor - 1)) ** (dim / (dim - 2))
        del settings["rope_scaling"]
    if scaling.get("type") == "longrope" and settings["original_max_position_embeddings"] < LONG_PROMPT_TOKENS:
        # Likewise: the factors of the longest prompt at every length.
        settings["rope_scaling"] = {**scaling, "short_factor": scaling["long_factor"]}
    # GLM has it in its own module.
    partial = 1.0 if settings["model_type"].startswith("glm") else settings.pop("partial_rotary_factor", 1.0)
    model = AutoModelForCausalLM.from_config(hf_config(settings)).float().eval()
    expected = {name for name in model.state_dict() if not (settings["tie_word_embeddings"] and name == "lm_head.weight")}
    model.load_state_dict({name: weights[name] for name in expected}, strict=False)
    if partial != 1.0:
        dim = int(partial * HIDDEN // settings["num_attention_heads"])
        rotary = model.model.rotary_emb
        rotary.inv_freq = 1.0 / (settings["rope_theta"] ** (torch.arange(0, dim, 2).float() / dim))
    return model


@torch.no_grad()
def evaluate(model: torch.nn.Module, prompt: list[int]) -> tuple[torch.Tensor, list[int], list[float], torch.Tensor]:
    output = model(torch.tensor([prompt]), use_cache=False, output_hidden_states=True)
    tokens, margins = list(prompt), []
    for _ in range(GREEDY_TOKENS):
        best = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
        tokens.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
    return output.logits[0], tokens[len(prompt) :], margins, output.hidden_states[-1][0]


@torch.no_grad()
def last_logits(model: torch.nn.Module, prompt: list[int]) -> list[float]:
    return [float(f"{value:.8g}") for value in model(torch.tensor([prompt]), use_cache=False).logits[0, -1].tolist()]


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.models.llama.modeling_llama.apply_rotary_pos_emb = rotate_part
    chosen = sys.argv[1:]
    if not chosen:
        shutil.rmtree(OUT, ignore_errors=True)
    # Biases belong to one case alone; a loader ignores tensors that the configuration does not call for.
    stored = {}
    for seed, (name, (config, dtype, shard_bytes)) in enumerate(CHECKPOINTS.items(), 1):
        if chosen and name not in chosen:
            continue
        shutil.rmtree(OUT / "checkpoints" / name, ignore_errors=True)
        extra = {"attention_bias": True, "mlp_bias": True} if name == "llama2" else {}
        folder = OUT / "checkpoints" / name
        stored[name] = save_checkpoint(folder, {**config, **extra}, dtype, shard_bytes, HYBRID_SEEDS.get(name, seed))
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generator = torch.Generator().manual_seed(1)
    prompt = torch.randint(0, 256, (PROMPT_TOKENS,), generator=generator).tolist()
    long_prompt = torch.randint(0, 256, (LONG_PROMPT_TOKENS,), generator=generator).tolist()
    for case, (checkpoint, changes) in CASES.items():
        if checkpoint not in stored:
            continue
        model = build({**CHECKPOINTS[checkpoint][0], **changes}, stored[checkpoint])
        logits, greedy, margins, hidden = evaluate(model, prompt)
        (OUT / f"{case}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        expected = {
            "checkpoint": checkpoint, "config": changes, "prompt": prompt, "greedy": greedy, "smallestMargin": min(margins),
            "long": {"prompt": long_prompt, "logits": last_logits(model, long_prompt)},
            "pooled": {"last": hidden[-1].tolist(), "mean": hidden.mean(dim=0).tolist()},
        }
        (OUT / f"{case}.json").write_text(json.dumps(expected) + "\n")
        print(f"{case}: logits std {logits.std():.2f}, smallest greedy margin {min(margins):.4f}, distinct greedy tokens {len(set(greedy))}")


main()
