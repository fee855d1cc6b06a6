"""Tiny random LoRA adapters and what peft computes with them -> packages/artifacts/fixtures/adapters/.

`<name>/` is a folder as `PeftModel.save_pretrained` writes it, for a checkpoint of fixtures/models; `<name>.json` names that
checkpoint, the prompt and the greedy continuation; `<name>.logits` is f32 `[prompt, vocab]`. Computed in f32 with eager attention.
"""

import json
import math
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

FIXTURES = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures"
OUT = FIXTURES / "adapters"
PROMPT_TOKENS, GREEDY_TOKENS = 24, 24
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# name -> (checkpoint, stored type, LoraConfig)
ADAPTERS = {
    "llama3-all": ("llama3", torch.float32, {
        "r": 4, "lora_alpha": 8, "target_modules": ALL, "rank_pattern": {"o_proj": 6},
        "alpha_pattern": {"model.layers.1.mlp.down_proj": 20, "v_proj": 2},
    }),
    "llama3-rslora": ("llama3", torch.float32, {"r": 3, "lora_alpha": 4, "use_rslora": True, "target_modules": ["q_proj", "up_proj"]}),
    "llama3-upper": ("llama3", torch.float32, {"r": 2, "lora_alpha": 6, "target_modules": ["k_proj", "down_proj"], "layers_to_transform": [1]}),
    "qwen3-bf16": ("qwen3", torch.bfloat16, {"r": 4, "lora_alpha": 8, "target_modules": ALL}),
    "phi3-fused": ("phi3", torch.float32, {"r": 4, "lora_alpha": 4, "target_modules": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]}),
}


def draw(model: torch.nn.Module, dtype: torch.dtype, seed: int) -> None:
    """Additions about as large as a third of what they are added to."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if "lora_" not in name:
            continue
        values = torch.randn(parameter.shape, generator=generator) / math.sqrt(parameter.shape[1])
        parameter.data = (values * (0.3 if "lora_B" in name else 1.0)).to(dtype).float()


@torch.no_grad()
def evaluate(model: torch.nn.Module, prompt: list[int]) -> tuple[torch.Tensor, list[int], float]:
    logits = model(torch.tensor([prompt]), use_cache=False).logits[0]
    tokens, margin = list(prompt), math.inf
    for _ in range(GREEDY_TOKENS):
        best = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
        tokens.append(int(best.indices[0]))
        margin = min(margin, float(best.values[0] - best.values[1]))
    return logits, tokens[len(prompt) :], margin


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    shutil.rmtree(OUT, ignore_errors=True)
    generator = torch.Generator().manual_seed(1)
    prompt = torch.randint(0, 256, (PROMPT_TOKENS,), generator=generator).tolist()
    for seed, (name, (checkpoint, dtype, settings)) in enumerate(ADAPTERS.items(), 1):
        folder = FIXTURES / "models/checkpoints" / checkpoint
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
        draw(model, dtype, seed)
        logits, greedy, margin = evaluate(model, prompt)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype)
        model.save_pretrained(OUT / name)
        (OUT / name / "README.md").unlink()
        config_path = OUT / name / "adapter_config.json"
        config = json.loads(config_path.read_text())
        config["base_model_name_or_path"] = checkpoint
        config["target_modules"] = sorted(config["target_modules"])
        config_path.write_text(json.dumps(config, indent=2) + "\n")
        (OUT / f"{name}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        (OUT / f"{name}.json").write_text(json.dumps({"checkpoint": checkpoint, "prompt": prompt, "greedy": greedy, "smallestMargin": margin}) + "\n")
        print(f"{name}: smallest greedy margin {margin:.4f}")


main()
