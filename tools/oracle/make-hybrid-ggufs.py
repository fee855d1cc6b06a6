"""GGUF files of tiny checkpoints, made by llama.cpp's own converter -> packages/artifacts/fixtures/gguf/.

usage: LLAMA_CPP=FOLDER make-hybrid-ggufs.py [NAME ...]   (a checkout of llama.cpp; run-llama-cpp.mjs then adds what it computes)
The converter knows tokenizers by a digest of what they do, and ours is nobody's: it is told that it is Qwen's.
"""

import json
import os
import runpy
import sys
from pathlib import Path

LLAMA_CPP = os.environ["LLAMA_CPP"]
FIXTURES = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures"
# file -> (checkpoint of fixtures/models, type); rounding flips choices of experts, so mixtures stay in f16
FILES = {
    "qwen35moe-f16": ("qwen3-5-moe", "f16"),
    "qwen3next-f16": ("qwen3-next", "f16"),
    "lfm2-q8_0": ("lfm2", "q8_0"),
    "lfm2moe-f16": ("lfm2-moe", "f16"),
    "granitehybrid-q8_0": ("granite4", "q8_0"),
    "granitehybrid-moe-f16": ("granite4-moe", "f16"),
    "falcon-h1-q8_0": ("falcon-h1", "q8_0"),
    "falcon-h1-plain-q8_0": ("falcon-h1-plain", "q8_0"),
    "nemotron-h-q8_0": ("nemotron-h", "q8_0"),
    "nemotron-h-moe-f16": ("nemotron-h-moe", "f16"),
    "glm4moe-f16": ("glm4-moe", "f16"),
    "minimax-m2-f16": ("minimax-m2", "f16"),
    "ernie4_5-moe-f16": ("ernie4-5-moe", "f16"),
}

sys.path[:0] = [LLAMA_CPP, f"{LLAMA_CPP}/gguf-py"]
import conversion.base  # noqa: E402
import transformers  # noqa: E402

conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
transformers.AutoTokenizer = transformers.PreTrainedTokenizerFast
from conversion import ernie, glm  # noqa: E402

# These read their family's own tokenizer by name.
for model in (glm.Glm4MoeModel, ernie.Ernie4_5Model, ernie.Ernie4_5MoeModel):
    model.set_vocab = conversion.base.TextModel._set_vocab_gpt2

# transformers' class fills in experts, which a dense Nemotron-H does not have.
load_with_defaults = conversion.base.ModelBase.load_hparams
conversion.base.ModelBase.load_hparams = staticmethod(
    lambda folder, is_mistral_format: (
        json.loads((Path(folder) / "config.json").read_text()) if Path(folder).name == "nemotron-h" else load_with_defaults(folder, is_mistral_format)
    )
)
chosen = sys.argv[1:]
for file, (checkpoint, kind) in FILES.items():
    if chosen and file not in chosen:
        continue
    sys.argv = ["convert", str(FIXTURES / "models/checkpoints" / checkpoint), "--outfile", str(FIXTURES / "gguf" / f"{file}.gguf"), "--outtype", kind]
    sys.argv += ["--no-mtp"] if checkpoint.startswith("qwen") else []
    runpy.run_path(f"{LLAMA_CPP}/convert_hf_to_gguf.py", run_name="__main__")
