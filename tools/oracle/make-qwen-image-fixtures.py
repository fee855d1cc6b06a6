"""Tiny Qwen models with their vision towers, and what transformers makes of images with them -> packages/artifacts/fixtures/images/.

`<name>/` is a Hugging Face folder with the tensor names of published checkpoints. `<name>.json` holds prompts with images in place of
`image_token_id`, their greedy continuations, the files of their logits, f32 `[prompt, vocab]`, and, for each image, of what the tower gives,
f32 `[1 + deepstack, tokens, hidden]`. Of Qwen3-VL alone: `qwen3-vl-pixels.json` names, for each of the images of make-image-fixtures.py, the grid and
the file of f32 `[patches, pixels]` that Qwen2VLImageProcessorPil gives; `qwen3-vl-large.json` is an image of over 1,024 tokens: its grid, and every so
many tokens of what the tower gives. Names as arguments make those alone anew. Needs Pillow below 13, as make-image-fixtures.py says.
"""

import json
import math
import shutil
import sys
from pathlib import Path

import torch
from hybrids import QWEN35, QWEN35_MOE, draw_recurrent
from PIL import Image, ImageOps
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForImageTextToText
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/images"
TOKENIZER = OUT.parent / "models/checkpoints/llama3"
VOCAB, IMAGE, BEGIN, END, VIDEO, GREEDY_TOKENS = 280, 272, 273, 274, 275, 32
# The parts of Qwen3-VL's template that lay out texts and images.
TEMPLATE = (
    "{% for message in messages %}{{ '<|turn|>' + message['role'] + '\n' }}{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for item in message['content'] %}{% if item['type'] == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% elif 'text' in item %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}{{ '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|turn|>assistant\n' }}{% endif %}"
)
IDS = {
    "torch_dtype": "float32", "tie_word_embeddings": True, "image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": BEGIN,
    "vision_end_token_id": END,
}
TOWER = {
    "depth": 3, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "in_channels": 3, "patch_size": 8, "spatial_merge_size": 2,
    "temporal_patch_size": 2, "out_hidden_size": 64, "num_position_embeddings": 25, "deepstack_visual_indexes": [], "hidden_act": "gelu_pytorch_tanh",
}
HYBRID = {
    "vocab_size": VOCAB, "num_hidden_layers": 3, "layer_types": ["linear_attention", "full_attention", "linear_attention"], "tie_word_embeddings": True,
    "architectures": None,
}
QWEN3_VL_TEXT = {
    "model_type": "qwen3_vl_text", "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-6, "max_position_embeddings": 512,
    "rope_theta": 10000.0, "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True},
    "bos_token_id": 269, "eos_token_id": 270, "attention_bias": False, "hidden_act": "silu",
}
PROMPTS = [([], [19]), (["photo.jpg"], [7, 9]), (["turned.jpg", "tall.webp"], [3, 5, 11])]
# name -> (config.json, prompts: images, and how much text stands before each and behind the last)
MODELS = {
    "qwen3-vl": ({
        "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", **IDS,
        "vision_config": {"model_type": "qwen3_vl", **TOWER, "deepstack_visual_indexes": [0, 1]},
        "text_config": QWEN3_VL_TEXT,
    }, PROMPTS),
    # windows of two tokens in each direction
    "qwen2-5-vl": ({
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", **IDS,
        "vision_config": {
            "model_type": "qwen2_5_vl", "depth": 4, "hidden_size": 32, "intermediate_size": 44, "num_heads": 2, "in_channels": 3, "patch_size": 8,
            "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 64, "window_size": 32, "fullatt_block_indexes": [2],
            "hidden_act": "silu",
        },
        "text_config": {
            "model_type": "qwen2_5_vl_text", "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 512, "rope_theta": 10000.0,
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "use_sliding_window": False, "bos_token_id": 269, "eos_token_id": 270,
            "hidden_act": "silu",
        },
    }, PROMPTS),
    "qwen3-5": ({
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", **IDS,
        "vision_config": {"model_type": "qwen3_5", **TOWER}, "text_config": {**QWEN35, **HYBRID},
    }, PROMPTS),
    "qwen3-vl-moe": ({
        "architectures": ["Qwen3VLMoeForConditionalGeneration"], "model_type": "qwen3_vl_moe", **IDS,
        "vision_config": {"model_type": "qwen3_vl_moe", **TOWER, "depth": 2, "deepstack_visual_indexes": [0]},
        "text_config": {
            **QWEN3_VL_TEXT, "model_type": "qwen3_vl_moe_text", "num_hidden_layers": 2, "tie_word_embeddings": True, "decoder_sparse_step": 1,
            "mlp_only_layers": [], "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24,
        },
    }, PROMPTS[1:2]),
    "qwen3-5-moe": ({
        "architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe", **IDS,
        "vision_config": {"model_type": "qwen3_5_moe", **TOWER, "depth": 1},
        "text_config": {**QWEN35_MOE, **HYBRID, "num_hidden_layers": 2, "layer_types": HYBRID["layer_types"][:2]},
    }, PROMPTS[1:2]),
}
PROCESSOR = {
    "size": {"shortest_edge": 1024, "longest_edge": 4096}, "patch_size": 8, "temporal_patch_size": 2, "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "image_processor_type": "Qwen2VLImageProcessorFast",
}
IMAGES = ["photo.jpg", "tall.webp", "grey.png", "turned.jpg"]


def processed(name: str, **others: object) -> tuple[torch.Tensor, torch.Tensor]:
    image = ImageOps.exif_transpose(Image.open(OUT / name)).convert("RGB")
    settings = {key: value for key, value in PROCESSOR.items() if key != "image_processor_type"}
    made = Qwen2VLImageProcessorPil(**{**settings, **others})([image], return_tensors="pt")
    return made["pixel_values"].float(), made["image_grid_thw"]


def draw(name: str, shape: torch.Size, generator: torch.Generator, model_type: str) -> torch.Tensor:
    values = torch.randn(shape, generator=generator)
    if "language_model" in name and (drawn := draw_recurrent(name, values, model_type)) is not None:
        return drawn
    if "norm" in name and name.endswith(".weight"):
        return 1 + 0.1 * values
    if name.endswith(".bias"):
        return 0.1 * values
    if "embed_tokens" in name:
        return values * 0.5
    if "pos_embed" in name:
        return values * 0.5
    if "patch_embed" in name:
        return values * 2 / math.sqrt(math.prod(shape[1:]))
    # With more, 32-bit floats alone differ by 4e-5 from 64-bit ones behind a tower of gated layers.
    gain = 1.0 if model_type == "qwen2_5_vl_text" and "visual" in name else 2.0 if "q_proj" in name or "k_proj" in name or "qkv" in name else 1.5
    return values * gain / math.sqrt(shape[-1])


def save_checkpoint(folder: Path, config: dict) -> torch.nn.Module:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR, indent=2) + "\n")
    tokenizer = json.loads((TOKENIZER / "tokenizer.json").read_text())
    for token, content in [(IMAGE, "<|image_pad|>"), (BEGIN, "<|vision_start|>"), (END, "<|vision_end|>"), (VIDEO, "<|video_pad|>")]:
        tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": token, "content": content})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n")
    settings = json.loads((TOKENIZER / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": TEMPLATE}, indent=2) + "\n")
    made = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(folder))
    generator = torch.Generator().manual_seed(17)
    stored = {}
    for key, value in sorted(made.state_dict().items()):
        if key != "lm_head.weight":
            stored[key] = draw(key, value.shape, generator, config["text_config"]["model_type"]).contiguous()
    if config["model_type"] == "qwen3_vl_moe":
        # As published.
        stored = {key: value.transpose(1, 2).contiguous() if ".experts." in key else value for key, value in stored.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
    print({key: value for key, value in info.items() if value}, sorted(stored)[-30:], sum(v.numel() for v in stored.values()) * 4)
    return model.eval()


def write_pixels() -> None:
    cases = []
    for index, name in enumerate(IMAGES):
        pixels, grid = processed(name)
        file = f"qwen3-vl-{index}.pixels"
        # The second moment of an image is the first again.
        (OUT / file).write_bytes(pixels.numpy().astype("<f4").tobytes())
        cases.append({"image": name, "grid": grid[0].tolist(), "pixels": file})
        print(name, grid.tolist(), pixels.shape)
    (OUT / "qwen3-vl-pixels.json").write_text(json.dumps({"settings": PROCESSOR, "images": cases}, indent=1) + "\n")


def rows_of(model: torch.nn.Module, pixels: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    seen = model.model.get_image_features(pixels, grid)
    return torch.stack([seen.pooler_output[0], *[feature[0] for feature in getattr(seen, "deepstack_features", None) or []]])


def write_prompts(name: str, model: torch.nn.Module, prompts: list) -> None:
    generator = torch.Generator().manual_seed(5)
    text = lambda count: torch.randint(0, 256, (count,), generator=generator).tolist()
    fixtures = []
    for case, (images, lengths) in enumerate(prompts):
        made = [processed(image) for image in images]
        prompt = [269, *text(lengths[0])]
        for (pixels, grid), length in zip(made, lengths[1:]):
            prompt += [BEGIN, *[IMAGE] * (int(grid.prod()) // 4), END, *text(length)]
        vision = {} if not made else {"pixel_values": torch.cat([pixels for pixels, _ in made]), "image_grid_thw": torch.cat([grid for _, grid in made])}
        towers = []
        for at, (pixels, grid) in enumerate(made):
            file = f"{name}-{case}-{at}.rows"
            (OUT / file).write_bytes(rows_of(model, pixels, grid).contiguous().numpy().astype("<f4").tobytes())
            towers.append(file)

        def run(tokens: list[int]) -> torch.Tensor:
            ids = torch.tensor([tokens])
            model.model.rope_deltas = None
            return model(input_ids=ids, mm_token_type_ids=(ids == IMAGE).int(), use_cache=False, **vision).logits[0]

        tokens, margin = list(prompt), math.inf
        logits = run(prompt)
        for _ in range(GREEDY_TOKENS):
            best = run(tokens)[-1].topk(2)
            tokens.append(int(best.indices[0]))
            margin = min(margin, float(best.values[0] - best.values[1]))
        (OUT / f"{name}-{case}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        fixtures.append({"images": images, "prompt": prompt, "greedy": tokens[len(prompt):], "logits": f"{name}-{case}.logits", "rows": towers})
        print(f"{name} {images}: logits std {logits.std():.2f}, smallest margin {margin:.4f}, distinct {len(set(tokens[len(prompt):]))}")
    (OUT / f"{name}.json").write_text(json.dumps(fixtures) + "\n")


def write_large(model: torch.nn.Module) -> None:
    size, every = {"shortest_edge": 16 * 16 * 1400, "longest_edge": 16 * 16 * 16384}, 50
    pixels, grid = processed("photo.jpg", size=size)
    rows = rows_of(model, pixels, grid)
    (OUT / "qwen3-vl-large.rows").write_bytes(rows[:, ::every].contiguous().numpy().astype("<f4").tobytes())
    large = {"image": "photo.jpg", "size": size, "grid": grid[0].tolist(), "every": every, "rows": "qwen3-vl-large.rows"}
    (OUT / "qwen3-vl-large.json").write_text(json.dumps(large) + "\n")
    print(large, rows.shape)


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    for name, (config, prompts) in MODELS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        model = save_checkpoint(OUT / name, config)
        write_prompts(name, model, prompts)
        if name == "qwen3-vl":
            write_pixels()
            write_large(model)


main()
