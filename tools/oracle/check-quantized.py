"""Holds what `octavo quantize` writes against other readers: the same tokens, near ties aside.

    python tools/oracle/check-quantized.py ORIGINAL ARTIFACT [ARTIFACT ...]

compressed-tensors and bitsandbytes artifacts are loaded by transformers itself, where those packages are installed; AWQ and GPTQ
artifacts by the formats' written definitions in torch, since their own packages need a GPU. GGUF files are run by run-llama-cpp.mjs.
Each model continues a fixed prompt greedily; `octavo-greedy.mjs` gives Octavo's continuation. A token may differ from Octavo's where the
reader's own logit of Octavo's token is within a bound of its best: NEAR for weights by their definition. Readers of compressed-tensors
also round the activations of each token, to 8 bits or to E4M3's four significant ones, which Octavo does differently or not at all:
their own logits, further from the exact product than Octavo's, may move by NEAR_ROUNDED.
"""

import json
import pathlib
import subprocess
import sys

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

NEAR = 0.5
NEAR_ROUNDED = 1.0
PROMPT = "<|im_start|>user\nWhat is the opposite of cold?<|im_end|>\n<|im_start|>assistant\n"
COUNT = 24
HERE = pathlib.Path(__file__).parent


def tensors_of(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                found[name] = file.get_tensor(name)
    return found


def unpack(words, bits, axis):
    """A dense bit stream along an axis of int32 words, least significant bit first."""
    words = words.movedim(axis, -1).to(torch.int64) & 0xFFFFFFFF
    stream = (words.unsqueeze(-1) >> torch.arange(32)) & 1
    stream = stream.flatten(-2).unflatten(-1, (-1, bits))
    return (stream << torch.arange(bits)).sum(-1).movedim(-1, axis)


def awq_weight(module, config):
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    natural = lambda words: unpack(words, 4, 1).unflatten(1, (-1, 8))[:, :, order].flatten(1)
    codes, zeros = natural(module["qweight"]), natural(module["qzeros"])
    group = codes.shape[0] // zeros.shape[0]
    spread = lambda values: values.repeat_interleave(group, 0)
    return ((codes - spread(zeros)).float() * spread(module["scales"].float())).T


def gptq_weight(module, config):
    bits = config["bits"]
    codes = unpack(module["qweight"], bits, 0)
    zeros = (unpack(module["qzeros"], bits, 1) + 1) & (2**bits - 1)
    index = module["g_idx"].long()
    return ((codes - zeros[index]).float() * module["scales"].float()[index]).T


def channel_weight(module, config):
    return module["weight"].float() * module["weight_scale"].float()


READERS = {"awq": awq_weight, "gptq": gptq_weight, "compressed-tensors": channel_weight}


def by_definition(original, folder, config):
    """The original with the artifact's tensors in its place."""
    model = AutoModelForCausalLM.from_pretrained(original, dtype=torch.float32)
    read = READERS[config["quant_method"]]
    tensors = tensors_of(folder)
    modules, state = {}, {}
    for name, tensor in tensors.items():
        module, leaf = name.rsplit(".", 1)
        is_scaled = f"{module}.weight_scale" in tensors
        if leaf in ("qweight", "qzeros", "scales", "g_idx") or is_scaled:
            modules.setdefault(module, {})[leaf] = tensor
        else:
            state[name] = tensor.float()
    for module, leaves in modules.items():
        state[f"{module}.weight"] = read(leaves, config)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    return model


def readers(original, folder):
    """What each reader is called, its model, and how far Octavo's tokens may be from its best."""
    config = json.loads((folder / "config.json").read_text())["quantization_config"]
    if config["quant_method"] in READERS:
        yield "by definition", by_definition(original, folder, config), NEAR
    if config["quant_method"] not in ("awq", "gptq"):
        bound = NEAR_ROUNDED if config["quant_method"] == "compressed-tensors" else NEAR
        yield "by transformers", AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), bound


def octavo_greedy(folder):
    script = HERE / "octavo-greedy.mjs"
    out = subprocess.run(["node", script, folder, PROMPT, str(COUNT)], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def check(original, folder):
    run = octavo_greedy(folder)
    prompt, tokens = run["prompt"], run["tokens"]
    ids = torch.tensor([prompt + tokens])
    good = True
    for reader, model, bound in readers(original, folder):
        with torch.no_grad():
            logits = model.eval()(ids).logits[0, len(prompt) - 1 : -1].float()
        gaps = (logits.max(-1).values - logits.gather(-1, torch.tensor(tokens)[:, None])[:, 0]).tolist()
        same = sum(gap == 0 for gap in gaps)
        print(f"{folder.name} {reader}: {same} of {len(tokens)} tokens the same, largest gap {max(gaps):.3f} of {bound}")
        good = good and max(gaps) <= bound
    return good


if __name__ == "__main__":
    first, *rest = map(pathlib.Path, sys.argv[1:])
    results = [check(first, folder) for folder in rest]
    sys.exit(0 if all(results) else 1)
