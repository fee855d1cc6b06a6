"""Writes a checkpoint as a Hugging Face folder: config, generation config, bf16 weights, tokenizer config."""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from model import ModelConfig, Qwen3
from rendering import MODEL_FOLDER


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("checkpoint", nargs="+", help="several, of one run's legs, are averaged")
    arguments.add_argument("--config", help="the config.json the checkpoint was trained with, where it is not the default shape")
    arguments.add_argument("--out", default=str(MODEL_FOLDER))
    arguments.add_argument("--average", action="store_true", help="the running average of the weights, for a checkpoint before the decay")
    options = arguments.parse_args()

    config = ModelConfig.load(options.config) if options.config else ModelConfig()
    tokenizer = Tokenizer.from_file(str(MODEL_FOLDER / "tokenizer.json"))
    end, pad = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")
    special_ids = {"bos_token_id": None, "eos_token_id": end, "pad_token_id": pad}

    model = Qwen3(config)
    part = "average" if options.average else "model"
    states = [torch.load(checkpoint, map_location="cpu")[part] for checkpoint in options.checkpoint]
    model.load_state_dict({name: sum(state[name] for state in states) / len(states) for name in states[0]})
    weights = {name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in model.state_dict().items()}
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{name} holds values that are not finite")

    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    write(out / "config.json", config.checkpoint_config(special_ids))
    write(out / "generation_config.json", {"do_sample": False, "eos_token_id": [end, pad], "pad_token_id": pad})
    write(
        out / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config.max_position_embeddings,
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "unk_token": None,
            "add_prefix_space": False,
            "clean_up_tokenization_spaces": False,
            "added_tokens_decoder": {
                str(number): {
                    "content": token.content,
                    "lstrip": token.lstrip,
                    "normalized": token.normalized,
                    "rstrip": token.rstrip,
                    "single_word": token.single_word,
                    "special": token.special,
                }
                for number, token in sorted(tokenizer.get_added_tokens_decoder().items())
            },
            "chat_template": (MODEL_FOLDER / "chat_template.jinja").read_text(),
        },
    )
    if out != MODEL_FOLDER:
        for name in ("tokenizer.json", "chat_template.jinja"):
            (out / name).write_bytes((MODEL_FOLDER / name).read_bytes())
    print(sum(tensor.numel() for tensor in weights.values()), "parameters written to", out)


def write(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
