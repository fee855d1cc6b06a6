"""Tiny checkpoints of models that take images, and what transformers computes from them for text -> packages/artifacts/fixtures/containers/.

`<name>/` is a Hugging Face folder with the tensor names of published checkpoints, which transformers itself reads back; `<name>.json`
holds a prompt of text and its greedy continuation, `<name>.logits` f32 `[prompt, vocab]`. Names as arguments make those alone anew.
"""

import json
import math
import shutil
import sys
from pathlib import Path

import torch
from hybrids import GEMMA4_SMALL, LLAMA4, QWEN35, draw_gemma4
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForImageTextToText

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/containers"
TOKENIZER = OUT.parent / "models/checkpoints/llama3"
VOCAB, PROMPT_TOKENS, GREEDY_TOKENS = 272, 24, 32
TEXT = {
    "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5, "max_position_embeddings": 512,
}
ENDS = {"bos_token_id": 269, "eos_token_id": 270, "torch_dtype": "float32"}
PATCHES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
MROPE = {"type": "mrope", "mrope_section": [2, 3, 3]}

# name -> (config.json, what transformers calls tensors -> what published checkpoints do)
CONTAINERS = {
    "gemma3": ({
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", **ENDS, "mm_tokens_per_image": 4, "image_token_index": 262,
        "boi_token_index": 263, "eoi_token_index": 264, "vision_config": {"model_type": "siglip_vision_model", **PATCHES},
        "text_config": {**TEXT, "model_type": "gemma3_text", "head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16,
                        "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    }, {"model.language_model.": "language_model.model.", "model.vision_tower.": "vision_tower.", "model.multi_modal_projector.": "multi_modal_projector."}),
    "mistral3": ({
        "architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", **ENDS, "image_token_index": 10, "spatial_merge_size": 2,
        "vision_config": {"model_type": "pixtral", **PATCHES, "head_dim": 16},
        "text_config": {**TEXT, "model_type": "mistral", "head_dim": 24, "rope_theta": 1000000.0, "sliding_window": None, "tie_word_embeddings": False},
    }, {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head.", "model.vision_tower.": "vision_tower.",
        "model.multi_modal_projector.": "multi_modal_projector."}),
    # As published in 2025: the text's settings stand beside the others.
    "qwen2-5-vl": ({
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", **ENDS, **TEXT, "rope_theta": 1000000.0,
        "tie_word_embeddings": False, "use_sliding_window": False, "rope_scaling": MROPE, "image_token_id": 262, "video_token_id": 263,
        "vision_start_token_id": 264, "vision_end_token_id": 265,
        "vision_config": {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64, "fullatt_block_indexes": [0]},
    }, {"model.language_model.": "model.", "model.visual.": "visual."}),
    "qwen3-vl": ({
        "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", **ENDS, "tie_word_embeddings": True, "image_token_id": 262,
        "video_token_id": 263, "vision_start_token_id": 264, "vision_end_token_id": 265,
        "text_config": {**TEXT, "model_type": "qwen3_vl_text", "head_dim": 24, "rope_theta": 5000000.0, "attention_bias": False,
                        "tie_word_embeddings": True, "rope_scaling": {"rope_type": "default", "mrope_section": [4, 4, 4], "mrope_interleaved": True}},
        "vision_config": {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64, "num_position_embeddings": 16,
                          "deepstack_visual_indexes": [0]},
    }, {}),
    "qwen3-5": ({
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", **ENDS, "tie_word_embeddings": False, "image_token_id": 262,
        "video_token_id": 263, "vision_start_token_id": 264, "vision_end_token_id": 265,
        "text_config": {key: value for key, value in QWEN35.items() if key != "architectures"},
        "vision_config": {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64, "num_position_embeddings": 16},
    }, {}),
    "gemma4": ({
        "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", **ENDS, "tie_word_embeddings": True, "image_token_id": 262,
        "boi_token_id": 263, "eoi_token_id": 264, "video_token_id": 265, "audio_token_id": 266, "boa_token_id": 267, "eoa_token_index": 268,
        "audio_config": None, "text_config": {key: value for key, value in GEMMA4_SMALL.items() if key != "architectures"},
        "vision_config": {
            "model_type": "gemma4_vision", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 2, "head_dim": 16, "patch_size": 4, "position_embedding_size": 16,
        },
    }, {}),
    "llama4": ({
        "architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", **ENDS, "tie_word_embeddings": False, "image_token_index": 262,
        "boi_token_index": 263, "eoi_token_index": 264, "text_config": {key: value for key, value in LLAMA4.items() if key != "architectures"},
        "vision_config": {
            "model_type": "llama4_vision_model", **PATCHES, "intermediate_size": 128, "projector_input_dim": 32, "projector_output_dim": 32,
            "vision_output_dim": 32, "rope_theta": 10000.0,
        },
    }, {}),
}


def draw(name: str, shape: torch.Size, generator: torch.Generator, container: str) -> torch.Tensor:
    values = torch.randn(shape, generator=generator)
    gemma = container == "gemma3"
    if container == "gemma4" and (drawn := draw_gemma4(name, values)) is not None:
        return drawn
    if name.endswith("norm.weight"):
        return 0.1 * values + (0 if gemma else 1)
    if name.endswith(".bias"):
        return 0.2 * values
    if "embed_tokens" in name:
        return values * (0.12 if gemma else 0.4)
    if name == "lm_head.weight":
        return values * 3.0 / math.sqrt(shape[-1])
    if container == "llama4" and len(shape) == 3:
        return values / math.sqrt(shape[1])
    gain = 4.0 if "o_proj" in name or "down_proj" in name else 2.0 if "q_proj" in name or "k_proj" in name else 1.0
    return values * gain / math.sqrt(shape[-1])


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    for seed, name in enumerate(CONTAINERS):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        config, renamed = CONTAINERS[name]
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(TOKENIZER / file, folder / file)
        made = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(folder))
        generator = torch.Generator().manual_seed(seed)
        tied = getattr(made.config.get_text_config(), "tie_word_embeddings", False) or config.get("tie_word_embeddings", name == "gemma3")
        stored = {}
        for key, value in sorted(made.state_dict().items()):
            if tied and key == "lm_head.weight":
                continue
            outside = next((key.replace(inside, to, 1) for inside, to in renamed.items() if key.startswith(inside)), key)
            stored[outside] = draw(key, value.shape, generator, name).contiguous()
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
        model, info = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"], info
        model.eval()
        prompt = torch.randint(0, 256, (PROMPT_TOKENS,), generator=generator).tolist()
        tokens, margin = list(prompt), math.inf
        logits = model(input_ids=torch.tensor([prompt])).logits[0]
        for _ in range(GREEDY_TOKENS):
            best = model(input_ids=torch.tensor([tokens])).logits[0, -1].topk(2)
            tokens.append(int(best.indices[0]))
            margin = min(margin, float(best.values[0] - best.values[1]))
        (OUT / f"{name}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        (OUT / f"{name}.json").write_text(json.dumps({"prompt": prompt, "greedy": tokens[len(prompt):]}) + "\n")
        print(f"{name}: {len(stored)} tensors, logits std {logits.std():.2f}, smallest greedy margin {margin:.4f}, distinct {len(set(tokens[len(prompt):]))}")


main()
