"""A tiny Qwen3-VL with its vision tower, and what transformers makes of images with it -> packages/artifacts/fixtures/images/.

`qwen3-vl/` is a Hugging Face folder with the tensor names of published checkpoints. `qwen3-vl-pixels.json` names, for each of the images of
make-image-fixtures.py, the grid and the file of f32 `[patches, pixels]` that Qwen2VLImageProcessorPil gives. `qwen3-vl.json` holds prompts with
images in place of `image_token_id`, their greedy continuations, the files of their logits, f32 `[prompt, vocab]`, and, for each image, of what the
tower gives, f32 `[1 + deepstack, tokens, hidden]`. `qwen3-vl-large.json` is an image of over 1,024 tokens: its grid, and every so many tokens of what
the tower gives. Needs Pillow below 13, as make-image-fixtures.py says.
"""

import json
import math
import shutil
from pathlib import Path

import torch
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
CONFIG = {
    "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "torch_dtype": "float32", "tie_word_embeddings": True,
    "image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": BEGIN, "vision_end_token_id": END,
    "vision_config": {
        "model_type": "qwen3_vl", "depth": 3, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "in_channels": 3, "patch_size": 8,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 64, "num_position_embeddings": 25, "deepstack_visual_indexes": [0, 1],
        "hidden_act": "gelu_pytorch_tanh",
    },
    "text_config": {
        "model_type": "qwen3_vl_text", "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-6, "max_position_embeddings": 512,
        "rope_theta": 10000.0, "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True},
        "bos_token_id": 269, "eos_token_id": 270, "attention_bias": False, "hidden_act": "silu",
    },
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


def draw(name: str, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    values = torch.randn(shape, generator=generator)
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
    gain = 2.0 if "q_proj" in name or "k_proj" in name or "qkv" in name else 1.5
    return values * gain / math.sqrt(shape[-1])


def save_checkpoint(folder: Path) -> torch.nn.Module:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
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
            stored[key] = draw(key, value.shape, generator).contiguous()
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
    print({key: value for key, value in info.items() if value}, sorted(stored)[-30:], sum(v.numel() for v in stored.values()) * 4)
    return model.eval()


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    cases = []
    for index, name in enumerate(IMAGES):
        pixels, grid = processed(name)
        file = f"qwen3-vl-{index}.pixels"
        # The second moment of an image is the first again.
        (OUT / file).write_bytes(pixels.numpy().astype("<f4").tobytes())
        cases.append({"image": name, "grid": grid[0].tolist(), "pixels": file})
        print(name, grid.tolist(), pixels.shape)
    (OUT / "qwen3-vl-pixels.json").write_text(json.dumps({"settings": PROCESSOR, "images": cases}, indent=1) + "\n")

    model = save_checkpoint(OUT / "qwen3-vl")
    generator = torch.Generator().manual_seed(5)
    text = lambda count: torch.randint(0, 256, (count,), generator=generator).tolist()
    fixtures = []
    for case, (images, lengths) in enumerate([([], [19]), (["photo.jpg"], [7, 9]), (["turned.jpg", "tall.webp"], [3, 5, 11])]):
        made = [processed(name) for name in images]
        prompt = [269, *text(lengths[0])]
        for (pixels, grid), length in zip(made, lengths[1:]):
            prompt += [BEGIN, *[IMAGE] * (int(grid.prod()) // 4), END, *text(length)]
        vision = {} if not made else {"pixel_values": torch.cat([pixels for pixels, _ in made]), "image_grid_thw": torch.cat([grid for _, grid in made])}
        towers = []
        for at, (pixels, grid) in enumerate(made):
            seen = model.model.get_image_features(pixels, grid)
            rows = torch.stack([seen.pooler_output[0], *[feature[0] for feature in seen.deepstack_features]])
            file = f"qwen3-vl-{case}-{at}.rows"
            (OUT / file).write_bytes(rows.contiguous().numpy().astype("<f4").tobytes())
            towers.append(file)

        def run(tokens: list[int]) -> torch.Tensor:
            ids = torch.tensor([tokens])
            model.model.rope_deltas = None
            return model(input_ids=ids, mm_token_type_ids=(ids == IMAGE).int(), **vision).logits[0]

        tokens, margin = list(prompt), math.inf
        logits = run(prompt)
        for _ in range(GREEDY_TOKENS):
            best = run(tokens)[-1].topk(2)
            tokens.append(int(best.indices[0]))
            margin = min(margin, float(best.values[0] - best.values[1]))
        (OUT / f"qwen3-vl-{case}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        fixtures.append({"images": images, "prompt": prompt, "greedy": tokens[len(prompt):], "logits": f"qwen3-vl-{case}.logits", "rows": towers})
        print(f"{images}: logits std {logits.std():.2f}, smallest margin {margin:.4f}, distinct {len(set(tokens[len(prompt):]))}")
    (OUT / "qwen3-vl.json").write_text(json.dumps(fixtures) + "\n")

    size, every = {"shortest_edge": 16 * 16 * 1400, "longest_edge": 16 * 16 * 16384}, 50
    pixels, grid = processed("photo.jpg", size=size)
    seen = model.model.get_image_features(pixels, grid)
    rows = torch.stack([seen.pooler_output[0], *[feature[0] for feature in seen.deepstack_features]])
    (OUT / "qwen3-vl-large.rows").write_bytes(rows[:, ::every].contiguous().numpy().astype("<f4").tobytes())
    large = {"image": "photo.jpg", "size": size, "grid": grid[0].tolist(), "every": every, "rows": "qwen3-vl-large.rows"}
    (OUT / "qwen3-vl-large.json").write_text(json.dumps(large) + "\n")
    print(large, rows.shape)


main()
