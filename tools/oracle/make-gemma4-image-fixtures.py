"""Tiny Gemma 4s with their vision tower, and what transformers makes of images with them -> packages/artifacts/fixtures/images/.

`gemma4-small/` has the layers of the E-sizes: per-layer embeddings, shared keys and values, clipped linears, images that see nothing ahead.
`gemma4/` has those of the dense models, `gemma4-moe/` of the mixtures: standardised rows, images whose tokens see each other in layers
with a window. `gemma4-pixels.json` names, for some images of make-image-fixtures.py, the grid and the file of f32 `[patches, pixels]` that
Gemma4ImageProcessorPil gives, and sizes that it gives. `<name>.json` holds prompts with images in place of `image_token_id`, their greedy
continuations, the files of their logits, f32 `[prompt, vocab]`, and, for each image, of what the tower gives, f32 `[tokens, hidden]`.
Needs Pillow below 13, as make-image-fixtures.py says. Names of models as arguments make those alone anew.
"""

import json
import math
import shutil
import sys
from pathlib import Path

import torch
from hybrids import GEMMA4, GEMMA4_MOE, GEMMA4_SMALL, draw_gemma4
from PIL import Image, ImageOps
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForImageTextToText
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil, get_aspect_ratio_preserving_size

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/images"
TOKENIZER = OUT.parent / "models/checkpoints/llama3"
TEMPLATES = OUT.parents[2] / "text/fixtures/templates/chats.json"
VOCAB, IMAGE, BEGIN, END, PAD, GREEDY_TOKENS = 280, 272, 273, 274, 3, 32
TOKENS = {IMAGE: "<|image|>", BEGIN: "<|image>", END: "<image|>", 275: "<|video|>", 276: "<|audio|>", 277: "<|turn>", 278: "<turn|>"}
TOWER = {
    "model_type": "gemma4_vision", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 16, "patch_size": 2, "position_embedding_size": 210, "pooling_kernel_size": 3,
    "hidden_activation": "gelu_pytorch_tanh", "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
}
PROCESSOR = {
    "do_normalize": False, "do_rescale": True, "do_resize": True, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0],
    "image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 70, "patch_size": 2, "pooling_kernel_size": 3, "resample": 3,
    "rescale_factor": 1 / 255,
}
TEXT = {"vocab_size": VOCAB, "vocab_size_per_layer_input": VOCAB, "pad_token_id": PAD}
MODELS = {
    "gemma4-small": ({**GEMMA4_SMALL, **TEXT}, {**TOWER, "use_clipped_linears": True}),
    "gemma4": ({**GEMMA4, **TEXT, "use_bidirectional_attention": "vision"}, {**TOWER, "standardize": True}),
    "gemma4-moe": ({**GEMMA4_MOE, **TEXT, "use_bidirectional_attention": "vision"}, {**TOWER, "standardize": True}),
}
# With these weights f32 has room: transformers itself is within 8e-6 of what it computes in f64.
WEIGHT_SEEDS = {"gemma4-small": 363, "gemma4": 23, "gemma4-moe": 23}
TEXT_SEEDS = {"gemma4-small": 12, "gemma4": 6, "gemma4-moe": 5}
CASES = [([], [19]), (["photo.jpg"], [7, 9]), (["turned.jpg", "tall.webp"], [3, 5, 11])]
IMAGES = ["photo.jpg", "tall.webp", "turned.jpg"]


def processed(name: str) -> dict:
    image = ImageOps.exif_transpose(Image.open(OUT / name)).convert("RGB")
    settings = {key: value for key, value in PROCESSOR.items() if key != "image_processor_type"}
    return Gemma4ImageProcessorPil(**settings)([image], return_tensors="pt")


def draw(name: str, value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    shape = value.shape
    values = torch.randn(shape, generator=generator)
    # Bounds that some values reach, each of another size.
    if name.endswith(("_min", "_max")):
        bound = (1.2 if "input" in name else 1.6) + 0.3 * values.abs()
        return -bound if name.endswith("_min") else bound
    if name.endswith("std_bias"):
        return values
    if name.endswith("std_scale"):
        return 1 + 0.3 * values
    if "vision" in name and name.endswith("norm.weight"):
        return 1 + 0.1 * values
    if "position_embedding_table" in name:
        return values * 0.5
    if "embed_vision" in name:
        return values / math.sqrt(shape[-1])
    if "vision_tower" not in name and (drawn := draw_gemma4(name, values)) is not None:
        return drawn
    return values * 1.5 / math.sqrt(shape[-1])


def save_checkpoint(name: str) -> torch.nn.Module:
    folder = OUT / name
    text, vision = MODELS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = {
        "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "torch_dtype": "float32", "tie_word_embeddings": True,
        "bos_token_id": 269, "eos_token_id": 270, "image_token_id": IMAGE, "boi_token_id": BEGIN, "eoi_token_id": END, "video_token_id": 275,
        "audio_token_id": 276, "boa_token_id": 271, "eoa_token_index": 279, "audio_config": None,
        "text_config": {key: value for key, value in text.items() if key != "architectures"}, "vision_config": vision,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": PROCESSOR, "processor_class": "Gemma4Processor"}, indent=2) + "\n")
    tokenizer = json.loads((TOKENIZER / "tokenizer.json").read_text())
    for token, content in TOKENS.items():
        tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": token, "content": content})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n")
    settings = json.loads((TOKENIZER / "tokenizer_config.json").read_text())
    template = json.loads(TEMPLATES.read_text())["templates"]["gemma4"]
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": template}, indent=2) + "\n")
    made = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(folder))
    generator = torch.Generator().manual_seed(WEIGHT_SEEDS[name])
    stored = {key: draw(key, value, generator).contiguous() for key, value in sorted(made.state_dict().items()) if key != "lm_head.weight"}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
    print({key: value for key, value in info.items() if value}, [key for key in stored if "vision" in key][-24:], sum(v.numel() for v in stored.values()) * 4)
    return model.eval()


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    cases = []
    for index, name in enumerate(IMAGES):
        made = processed(name)
        positions = made["image_position_ids"][0]
        kept = positions[:, 0] >= 0
        grid = [int(positions[:, 1].max()) + 1, int(positions[:, 0].max()) + 1]
        file = f"gemma4-{index}.pixels"
        (OUT / file).write_bytes(made["pixel_values"][0][kept].float().numpy().astype("<f4").tobytes())
        cases.append({"image": name, "grid": grid, "pixels": file})
        print(name, grid, made["num_soft_tokens_per_image"])
    sizes = []
    for width, height, tokens, patch, pool in [
        (640, 480, 280, 16, 3), (4000, 3000, 280, 16, 3), (1, 1, 280, 16, 3), (333, 777, 70, 16, 3), (5000, 30, 280, 16, 3), (10, 1999, 280, 16, 3),
        (48, 48, 1120, 16, 3), (30000, 1, 280, 16, 3), (1999, 1000, 140, 16, 3), (1, 400, 70, 2, 3), (97, 89, 560, 14, 2),
    ]:
        high, wide = get_aspect_ratio_preserving_size(height, width, patch, tokens * pool**2, pool)
        sizes.append([width, height, tokens, patch, pool, wide, high])
    (OUT / "gemma4-pixels.json").write_text(json.dumps({"images": cases, "sizes": sizes}) + "\n")

    for model_name in sys.argv[1:] or MODELS:
        model = save_checkpoint(model_name)
        generator = torch.Generator().manual_seed(TEXT_SEEDS[model_name])
        text = lambda count: torch.randint(0, 256, (count,), generator=generator).tolist()
        fixtures = []
        for case, (images, lengths) in enumerate(CASES[: 2 if model_name == "gemma4-moe" else 3]):
            made = [processed(name) for name in images]
            prompt = [269, *text(lengths[0])]
            for one, length in zip(made, lengths[1:]):
                prompt += [BEGIN, *[IMAGE] * int(one["num_soft_tokens_per_image"][0]), END, *text(length)]
            vision = {} if not made else {key: torch.cat([one[key] for one in made]) for key in ("pixel_values", "image_position_ids")}
            towers = []
            for at, one in enumerate(made):
                seen = model.model.get_image_features(one["pixel_values"].float(), one["image_position_ids"])
                file = f"{model_name}-{case}-{at}.rows"
                (OUT / file).write_bytes(seen.pooler_output[0].contiguous().numpy().astype("<f4").tobytes())
                towers.append(file)

            def run(tokens: list[int]) -> torch.Tensor:
                ids = torch.tensor([tokens])
                return model(input_ids=ids, mm_token_type_ids=(ids == IMAGE).int(), use_cache=False, **vision).logits[0]

            tokens, margin = list(prompt), math.inf
            logits = run(prompt)
            # torch has no experts in f64.
            if not model.config.text_config.enable_moe_block:
                model.double()
                exact = model(
                    input_ids=torch.tensor([prompt]), mm_token_type_ids=(torch.tensor([prompt]) == IMAGE).int(), use_cache=False,
                    **{key: value.double() if value.is_floating_point() else value for key, value in vision.items()},
                ).logits[0]
                model.float()
                own = float(((logits - exact).abs().amax(1) / exact.abs().amax(1)).max())
                assert own < 8e-6, own
            for _ in range(GREEDY_TOKENS):
                best = run(tokens)[-1].topk(2)
                tokens.append(int(best.indices[0]))
                margin = min(margin, float(best.values[0] - best.values[1]))
            # transformers takes the ids of an image, a video and sound for such wherever they stand.
            assert not {IMAGE, 275, 276} & set(tokens[len(prompt):])
            (OUT / f"{model_name}-{case}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
            fixtures.append({"images": images, "prompt": prompt, "greedy": tokens[len(prompt):], "logits": f"{model_name}-{case}.logits", "rows": towers})
            print(f"{model_name} {images}: {len(prompt)} tokens, logits std {logits.std():.2f}, margin {margin:.4f}, distinct {len(set(tokens[len(prompt):]))}")
        (OUT / f"{model_name}.json").write_text(json.dumps(fixtures) + "\n")


main()
