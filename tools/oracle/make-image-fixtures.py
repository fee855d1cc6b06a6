"""A tiny Gemma 3 with its vision tower, and what transformers makes of images with it -> packages/artifacts/fixtures/images/.

`gemma3/` is a Hugging Face folder with the tensor names of published checkpoints. `*.png|jpg|webp|gif` are images; `pixels.json` names, for
each and a processor's settings, the file of f32 `[3, height, width]` that Gemma3ImageProcessorPil gives. `gemma3.json` holds prompts with
images in place of `image_token_index`, their greedy continuations and the files of their logits, f32 `[prompt, vocab]`.

Needs Pillow below 13 beside what requirements.txt names: from 13 on it resizes some images down before across, which rounds otherwise in
some pixels by one, and so does torchvision.
"""

import json
import math
import shutil
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForImageTextToText
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/images"
TOKENIZER = OUT.parent / "models/checkpoints/llama3"
VOCAB, IMAGE, BEGIN, END, GREEDY_TOKENS = 280, 272, 273, 274, 32
# Chats as google/gemma-3-4b-it lays them out, without what it does for system messages.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|turn|>' + message['role'] + '\n' }}{% if message['content'] is string %}"
    "{{ message['content'] | trim }}{% else %}{% for item in message['content'] %}{% if item['type'] == 'image' %}{{ '<start_of_image>' }}"
    "{% elif item['type'] == 'text' %}{{ item['text'] | trim }}{% endif %}{% endfor %}{% endif %}{{ '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|turn|>model\n' }}{% endif %}"
)
CONFIG = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "bos_token_id": 269, "eos_token_id": 270, "torch_dtype": "float32",
    "mm_tokens_per_image": 16, "image_token_index": IMAGE, "boi_token_index": BEGIN, "eoi_token_index": END,
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
        "image_size": 112, "patch_size": 14,
    },
    # An image is longer than the window.
    "text_config": {
        "model_type": "gemma3_text", "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "sliding_window": 12,
        "query_pre_attn_scalar": 16, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
}
PROCESSOR = {
    "do_convert_rgb": None, "do_normalize": True, "do_pan_and_scan": None, "do_rescale": True, "do_resize": True, "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "Gemma3ImageProcessor", "image_seq_length": 16, "image_std": [0.5, 0.5, 0.5], "resample": 2, "rescale_factor": 1 / 255,
    "size": {"height": 112, "width": 112},
}


def draw_image(width: int, height: int, seed: int, mode: str = "RGB") -> Image.Image:
    """Waves, edges and noise."""
    generator = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    channels = []
    for channel in range(len(mode)):
        a, b, c = (torch.rand(3, generator=generator) * 0.4).tolist()
        wave = 0.5 + 0.3 * torch.sin(a * x + b * y + channel) + 0.2 * ((x * c).floor() % 2)
        channels.append((255 * (wave + 0.15 * torch.randn(wave.shape, generator=generator)).clamp(0, 1)).to(torch.uint8))
    return Image.fromarray(torch.stack(channels, -1).squeeze(-1).numpy(), mode)


def save_images() -> list[str]:
    draw_image(90, 61, 1).save(OUT / "colours.png")
    draw_image(150, 97, 2).resize((150, 97)).save(OUT / "photo.jpg", quality=92)
    draw_image(64, 200, 3).save(OUT / "tall.webp", lossless=True)
    draw_image(40, 40, 4, "RGBA").save(OUT / "clear.png")
    draw_image(33, 50, 5, "L").save(OUT / "grey.png")
    draw_image(48, 32, 6).quantize(64).save(OUT / "palette.gif")
    turned = Image.Exif()
    turned[0x0112] = 6
    draw_image(70, 45, 7, "RGB").save(OUT / "turned.jpg", quality=90, exif=turned)
    return ["colours.png", "photo.jpg", "tall.webp", "clear.png", "grey.png", "palette.gif", "turned.jpg"]


def load_image(name: str) -> Image.Image:
    """As transformers.image_utils.load_image."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(Image.open(OUT / name)).convert("RGB")


def pixels_of(names: list[str], settings: dict) -> torch.Tensor:
    return Gemma3ImageProcessorPil(**settings)([load_image(name) for name in names], return_tensors="pt")["pixel_values"]


def draw(name: str, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    values = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight") or "layer_norm" in name or "layernorm" in name:
        vision = "vision_tower" in name and name.endswith(".weight")
        return 0.1 * values + (1 if vision else 0)
    if name.endswith(".bias"):
        return 0.1 * values
    if "embed_tokens" in name:
        return values * 0.05
    if "position_embedding" in name:
        return values * 0.5
    if "mm_input_projection" in name:
        return values * 1.5 / math.sqrt(shape[0])
    if "patch_embedding" in name:
        return values * 3 / math.sqrt(math.prod(shape[1:]))
    gain = 4.0 if "o_proj" in name or "down_proj" in name else 2.0 if "q_proj" in name or "k_proj" in name else 1.0
    return values * gain / math.sqrt(shape[-1])


def save_checkpoint(folder: Path) -> torch.nn.Module:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR, indent=2) + "\n")
    tokenizer = json.loads((TOKENIZER / "tokenizer.json").read_text())
    for token, content in [(IMAGE, "<image_soft_token>"), (BEGIN, "<start_of_image>"), (END, "<end_of_image>")]:
        tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": token, "content": content})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n")
    settings = json.loads((TOKENIZER / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": TEMPLATE}, indent=2) + "\n")
    made = AutoModelForImageTextToText.from_config(AutoConfig.from_pretrained(folder))
    generator = torch.Generator().manual_seed(11)
    renamed = {"model.language_model.": "language_model.model.", "model.vision_tower.": "vision_tower.vision_model.",
               "model.multi_modal_projector.": "multi_modal_projector."}
    stored = {}
    for key, value in sorted(made.state_dict().items()):
        drawn = draw(key, value.shape, generator).contiguous()
        if key == "lm_head.weight":
            continue
        value.copy_(drawn)
        stored[next((key.replace(inside, to, 1) for inside, to in renamed.items() if key.startswith(inside)), key)] = drawn
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True)
    print({key: value for key, value in info.items() if value})
    return model.eval()


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    names = save_images()
    cases = []
    for index, (name, size, resample) in enumerate([*((name, 56, 2) for name in names), ("photo.jpg", 24, 3), ("grey.png", 56, 3)]):
        changes = {"size": {"height": size, "width": size}, "resample": resample}
        file = f"{index}.pixels"
        (OUT / file).write_bytes(pixels_of([name], {**PROCESSOR, **changes})[0].numpy().astype("<f4").tobytes())
        cases.append({"image": name, "settings": {**PROCESSOR, **changes}, "pixels": file})
    (OUT / "pixels.json").write_text(json.dumps(cases, indent=1) + "\n")

    model = save_checkpoint(OUT / "gemma3")
    generator = torch.Generator().manual_seed(5)
    text = lambda count: torch.randint(0, 256, (count,), generator=generator).tolist()
    picture = [BEGIN, *[IMAGE] * CONFIG["mm_tokens_per_image"], END]
    fixtures = []
    for case, (images, prompt) in enumerate([
        (["photo.jpg"], [269, *text(7), *picture, *text(9)]),
        (["colours.png", "tall.webp"], [269, *text(3), *picture, *text(5), *picture, *text(11)]),
    ]):
        pixels = pixels_of(images, PROCESSOR)

        def run(tokens: list[int]) -> torch.Tensor:
            ids = torch.tensor([tokens])
            return model(input_ids=ids, pixel_values=pixels, token_type_ids=(ids == IMAGE).long()).logits[0]

        tokens, margin = list(prompt), math.inf
        logits = run(prompt)
        for _ in range(GREEDY_TOKENS):
            best = run(tokens)[-1].topk(2)
            tokens.append(int(best.indices[0]))
            margin = min(margin, float(best.values[0] - best.values[1]))
        (OUT / f"gemma3-{case}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        fixtures.append({"images": images, "prompt": prompt, "greedy": tokens[len(prompt):], "logits": f"gemma3-{case}.logits"})
        print(f"{images}: logits std {logits.std():.2f}, smallest margin {margin:.4f}, distinct {len(set(tokens[len(prompt):]))}")
        blind = model(input_ids=torch.tensor([prompt]), pixel_values=pixels.flip(0).flip(3), token_type_ids=(torch.tensor([prompt]) == IMAGE).long()).logits[0]
        print(f"  turned images change the last logits by {(blind - logits)[-1].abs().max():.3f}")
    (OUT / "gemma3.json").write_text(json.dumps(fixtures) + "\n")


main()
