"""Tiny embedding models, and what sentence-transformers makes of texts with them -> packages/artifacts/fixtures/embeddings/.

`<name>/` is a folder as sentence-transformers saves it, with the tensor names of a model without a head; `<name>.json` holds texts and
their embeddings.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/embeddings"
MODELS = OUT.parent / "models/checkpoints"
TEXTS = ["the cat and the dog", "over and over, the end", "x", "the house in the garden and then the other house"]
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
           {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}

# name -> (checkpoint that it is made of, changes of its config.json, pooling, modules)
FOLDERS = {
    # As Qwen3-Embedding is published.
    "qwen3-embedding": ("qwen3", {}, "lasttoken", [*MODULES, NORMALIZE]),
    "llama-embedding": ("llama2", {"architectures": ["LlamaModel"], "matryoshka_dimensions": [16, 32]}, "mean_tokens", MODULES),
}


def main() -> None:
    for name, (checkpoint, changes, pooling, modules) in FOLDERS.items():
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "1_Pooling").mkdir(parents=True)
        stored = load_file(MODELS / checkpoint / "model.safetensors")
        own = {key.removeprefix("model."): value for key, value in stored.items() if key != "lm_head.weight" and not key.endswith(".bias")}
        save_file(own, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((MODELS / checkpoint / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}, indent=2) + "\n")
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(MODELS / checkpoint / file, folder / file)
        (folder / "modules.json").write_text(json.dumps(modules, indent=2) + "\n")
        modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")}
        (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 64, **modes}, indent=2) + "\n")
        model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})
        model.tokenizer.pad_token = model.tokenizer.eos_token
        embeddings = [model.encode(text, batch_size=1).tolist() for text in TEXTS]
        (OUT / f"{name}.json").write_text(json.dumps({"texts": TEXTS, "embeddings": embeddings}) + "\n")
        print(name, [round(sum(x * x for x in row) ** 0.5, 3) for row in embeddings])


main()
