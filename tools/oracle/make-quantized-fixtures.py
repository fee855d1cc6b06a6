"""Tiny quantised checkpoints and what transformers computes from their dequantised weights -> packages/artifacts/fixtures/quantized/.

`<name>/` is a Hugging Face folder as the scheme's own library writes it; `<name>.json` holds a prompt and the greedy
continuation, `<name>.logits` f32 `[prompt, vocab]`, all from a float model whose linear layers are the dequantised ones.
The rounding is plain round-to-nearest. Packing and dequantising are done by AutoAWQ, compressed-tensors, bitsandbytes
and hqq; GPTQ is written from its definition (AutoGPTQ's `QuantLinear.pack`), since gptqmodel does not import without a
compiler on the machine. Needs, beside requirements.txt: autoawq 0.2.9, compressed-tensors 0.20.0, bitsandbytes 0.50.2,
hqq 0.2.8.post1 (with `--no-deps`, and accelerate, loguru, psutil, pydantic, termcolor).
"""

import json
import math
import shutil
import sys
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/quantized"
TOKENIZER = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/models/checkpoints/llama2"
VOCAB, PROMPT_TOKENS, GREEDY_TOKENS = 272, 24, 64
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 256, "rope_theta": 10000.0, "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
    "bos_token_id": 269, "eos_token_id": 270, "torch_dtype": "bfloat16",
}
Tensors = dict[str, torch.Tensor]


def float_weights() -> Tensors:
    """As make-model-fixtures.py draws tied models, so that greedy choices have clear margins."""
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in AutoModelForCausalLM.from_config(hf_config()).state_dict().items()}
    generator = torch.Generator().manual_seed(1)
    weights = {}
    for name in sorted(shapes):
        if name == "lm_head.weight":
            continue
        values = torch.randn(shapes[name], generator=generator)
        if name.endswith("norm.weight"):
            values = 1 + 0.1 * values
        elif name == "model.embed_tokens.weight":
            values *= 0.4
        else:
            gain = 2.0 if "q_proj" in name or "k_proj" in name else 4.0 if "o_proj" in name or "down_proj" in name else 1.0
            values *= gain / math.sqrt(shapes[name][1])
        weights[name] = values.to(torch.bfloat16).float()
    return weights


def hf_config():
    config = dict(CONFIG)
    return AutoConfig.for_model(config.pop("model_type"), **config, attn_implementation="eager")


def affine(weight: torch.Tensor, bits: int, group: int, symmetric: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes [out, in], f16 scales and whole zero points [out, groups]; zero points are at least 1, as AutoGPTQ's packing needs."""
    parts = weight.reshape(weight.shape[0], -1, group)
    top = 2**bits - 1
    if symmetric:
        scale = (parts.abs().amax(2) / (2 ** (bits - 1) - 0.5)).half()
        zero = torch.full_like(scale, 2 ** (bits - 1), dtype=torch.float32)
    else:
        low, high = parts.amin(2).clamp(max=0), parts.amax(2).clamp(min=0)
        scale = ((high - low) / top).half()
        zero = torch.clamp(torch.round(-low / scale.float()), 1, top)
    codes = torch.clamp(torch.round(parts / scale.float()[:, :, None]) + zero[:, :, None], 0, top)
    return codes.reshape(weight.shape).int(), scale, zero.int()


def dequantized(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    return (codes - zero[:, groups]).float() * scale.float()[:, groups]


def words(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """[n, m] codes as [n * bits / 32, m] int32: a dense bit stream down each column, from the least significant bit."""
    stream = ((codes.long()[:, None, :] >> torch.arange(bits)[None, :, None]) & 1).reshape(-1, 32, codes.shape[1])
    packed = (stream << torch.arange(32)[None, :, None]).sum(1)
    return torch.where(packed >= 2**31, packed - 2**32, packed).int()


# --- schemes: each gives the tensors of one layer and its dequantised weight ---


def awq_layer(version: str):
    import_awq()
    module = import_module(f"awq.modules.linear.{version}")
    packing = import_module("awq.utils.packing_utils")

    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        codes, scale, zero = affine(weight, 4, 32)
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        linear.weight.data = (codes - zero.repeat_interleave(32, 1)).float() * scale.float().repeat_interleave(32, 1)
        if version == "gemm":
            made = module.WQLinear_GEMM.from_linear(linear, 4, 32, scales=scale.t().contiguous(), zeros=zero.t().contiguous())
            theirs = packing.dequantize_gemm(made.qweight, made.qzeros, made.scales, 4, 32).t().float()
            assert (theirs - linear.weight).abs().max() <= 2e-3 * linear.weight.abs().max()
        else:
            made = module.WQLinear_GEMV.from_linear(linear, 4, 32, scales=scale, zeros=zero)
        tensors = {part: getattr(made, part).contiguous() for part in ("qweight", "qzeros", "scales")}
        return tensors, linear.weight.data

    return layer


def import_awq() -> None:
    """AutoAWQ's package files import model classes that newer transformers lack; its packing needs none of them."""
    if "awq" in sys.modules:
        return
    root = Path(find_spec("awq").submodule_search_locations[0])
    for package in ("awq", "awq.modules", "awq.modules.linear", "awq.utils"):
        stub = types.ModuleType(package)
        stub.__path__ = [str(root.joinpath(*package.split(".")[1:]))]
        sys.modules[package] = stub


def gptq_layer(bits: int, version: int = 1, act_order: bool = False, symmetric: bool = False):
    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        inputs, group = weight.shape[1], 32
        g_idx = torch.arange(inputs) // group
        order = torch.arange(inputs)
        if act_order:
            # One order for all layers of an input, as the shared Hessian gives.
            order = torch.randperm(inputs, generator=torch.Generator().manual_seed(inputs))
            g_idx = torch.empty_like(order)
            g_idx[order] = torch.arange(inputs) // group
        codes, scale, zero = affine(weight[:, order], bits, group, symmetric)
        unsorted = torch.empty_like(codes)
        unsorted[:, order] = codes
        stored_zero = zero - 1 if version == 1 else zero
        tensors = {
            "qweight": words(unsorted.t(), bits).contiguous(),
            "qzeros": words(stored_zero, bits).t().contiguous(),
            "scales": scale.t().contiguous(),
            "g_idx": g_idx.int(),
        }
        return tensors, dequantized(unsorted, scale, zero, g_idx)

    return layer


def compressed_layer(bits: int, symmetric: bool = True, fmt: str = "pack-quantized"):
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32

    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        rows, cols = weight.shape
        group = cols if fmt == "int-quantized" else 32
        codes, scale, zero = affine(weight, bits, group, symmetric)
        signed, offset = (codes - 2 ** (bits - 1)).to(torch.int8), 2 ** (bits - 1)
        if fmt == "int-quantized":
            return {"weight": signed, "weight_scale": scale}, dequantized(codes, scale, zero, torch.arange(cols) // group)
        packed = pack_to_int32(signed, bits)
        assert (unpack_from_int32(packed, bits, weight.shape) == signed).all()
        tensors = {"weight_packed": packed, "weight_scale": scale.to(torch.bfloat16), "weight_shape": torch.tensor([rows, cols])}
        if not symmetric:
            tensors["weight_zero_point"] = pack_to_int32((zero - offset).to(torch.int8), bits, packed_dim=0)
        return tensors, dequantized(codes, scale.to(torch.bfloat16), zero, torch.arange(cols) // group)

    return layer


def compressed_config(fmt: str, bits: int, symmetric: bool) -> dict:
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "channel" if fmt == "int-quantized" else "group",
               "group_size": None if fmt == "int-quantized" else 32}
    activations = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
    return {
        "quant_method": "compressed-tensors", "format": fmt, "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": activations if bits == 8 else None}},
    }


def float8_layer(scheme: str):
    """Scales are maxima over 448: of the tensor, of each row, or of tiles, 128 square in practice and here of a size that does not divide."""

    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        rows, cols = weight.shape
        tile = {"tensor": (rows, cols), "row": (1, cols), "block": (32, 48)}[scheme]
        padded = nn.functional.pad(weight, (0, -cols % tile[1], 0, -rows % tile[0]))
        tiles = padded.reshape(padded.shape[0] // tile[0], tile[0], padded.shape[1] // tile[1], tile[1])
        scale = tiles.abs().amax((1, 3)) / 448
        spread = scale.repeat_interleave(tile[0], 0).repeat_interleave(tile[1], 1)[:rows, :cols]
        codes = (weight / spread).to(torch.float8_e4m3fn)
        leaf = "weight_scale_inv" if scheme == "block" else "weight_scale"
        return {"weight": codes, leaf: scale.reshape(()) if scheme == "tensor" else scale}, codes.float() * spread

    return layer


def float4_layer(kind: str):
    """compressed-tensors' NVFP4 and MXFP4; `modelopt` has the same codes, its scale of the tensor multiplies."""
    from compressed_tensors.compressors.mxfp4.base import MXFP4PackedCompressor
    from compressed_tensors.compressors.mx_utils import decompress_mx_scale
    from compressed_tensors.compressors.nvfp4.base import NVFP4PackedCompressor
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    compressor, group = (MXFP4PackedCompressor, 32) if kind == "mxfp4" else (NVFP4PackedCompressor, 16)
    strategy = "group" if kind == "mxfp4" else "tensor_group"
    args = QuantizationArgs(num_bits=4, type="float", strategy=strategy, group_size=group, symmetric=True)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)

    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        largest = weight.unflatten(1, (-1, group)).abs().amax(2)
        if kind == "mxfp4":
            state = {"weight": weight, "weight_scale": torch.exp2(torch.ceil(torch.log2(largest / 6)))}
        else:
            factor = (448 * 6 / weight.abs().max()).reshape(1)
            state = {"weight": weight, "weight_scale": (largest / 6 * factor).to(torch.float8_e4m3fn).float(), "weight_global_scale": factor}
        stored = compressor.compress(state, scheme)
        # as `decompress` does, but in single precision
        codes = unpack_fp4_from_uint8(stored["weight_packed"], *weight.shape, dtype=torch.float32)
        scale = decompress_mx_scale(stored["weight_scale"]).float() if kind == "mxfp4" else stored["weight_scale"].float()
        reference = dequantize(codes, scale, args=args, global_scale=stored.get("weight_global_scale"), dtype=torch.float32)
        if kind == "modelopt":
            factor = 1 / stored["weight_global_scale"]
            stored = {"weight": stored["weight_packed"], "weight_scale": stored["weight_scale"], "weight_scale_2": factor.reshape(())}
        return {key: value.detach() for key, value in stored.items() if value is not None}, reference

    return layer


def float4_config(kind: str) -> dict:
    if kind == "modelopt":
        return {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    weights = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "group" if kind == "mxfp4" else "tensor_group",
               "group_size": 32 if kind == "mxfp4" else 16}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}
    return {"quant_method": "compressed-tensors", "format": f"{kind}-pack-quantized", "quantization_status": "compressed",
            "ignore": ["lm_head"], "config_groups": groups}


def bnb_layer(kind: str, nested: bool = False):
    from bitsandbytes import functional

    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        if kind == "int8":
            codes, scale, _ = functional.int8_vectorwise_quant(weight.half())
            reference = codes.float() * scale[:, None] / 127
            return {"weight": codes, "SCB": scale.float(), "weight_format": torch.tensor(0, dtype=torch.uint8)}, reference
        codes, state = functional.quantize_4bit(weight, blocksize=64, compress_statistics=nested, quant_type=kind)
        tensors = {f"weight.{part}": value for part, value in state.as_dict(packed=True).items()}
        return {"weight": codes, **tensors}, functional.dequantize_4bit(codes, state).float()

    return layer


def hqq_layer(bits: int, axis: int):
    from hqq.core.quantize import Quantizer
    from hqq.core.utils import encode_safetensor_type

    def layer(name: str, weight: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
        codes, meta = Quantizer.quantize(weight, nbits=bits, group_size=32, axis=axis, optimize=False, device="cpu", compute_dtype=torch.float32)
        meta["scale"], meta["zero"] = meta["scale"].half(), meta["zero"].half()
        reference = Quantizer.dequantize(codes, {**meta, "scale": meta["scale"].float(), "zero": meta["zero"].float(), "compute_dtype": torch.float32})
        meta |= {"quant_scale": False, "quant_zero": False}
        tensors = {key: encode_safetensor_type(value) for key, value in meta.items()}
        return {"W_q": codes, **{key: value for key, value in tensors.items() if value is not None}}, reference.float()

    return layer


def hqq_config(bits: int, axis: int) -> dict:
    return {"quant_method": "hqq", "skip_modules": ["lm_head"], "quant_config": {
        "weight_quant_params": {"nbits": bits, "group_size": 32, "axis": axis}, "scale_quant_params": None, "zero_quant_params": None}}


FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
GPTQ = {"quant_method": "gptq", "group_size": 32, "desc_act": False, "sym": False, "checkpoint_format": "gptq"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True}

# name -> (layer writer, quantization_config)
SCHEMES = {
    "awq-gemm": (lambda: awq_layer("gemm"), {**AWQ, "version": "gemm"}),
    "awq-gemv": (lambda: awq_layer("gemv"), {**AWQ, "version": "gemv"}),
    "gptq-4bit": (lambda: gptq_layer(4), {**GPTQ, "bits": 4}),
    "gptq-4bit-v2": (lambda: gptq_layer(4, version=2), {**GPTQ, "bits": 4, "checkpoint_format": "gptq_v2"}),
    "gptq-4bit-act-order": (lambda: gptq_layer(4, act_order=True), {**GPTQ, "bits": 4, "desc_act": True}),
    "gptq-2bit": (lambda: gptq_layer(2), {**GPTQ, "bits": 2}),
    "gptq-3bit": (lambda: gptq_layer(3), {**GPTQ, "bits": 3}),
    "gptq-8bit-act-order": (
        lambda: gptq_layer(8, act_order=True, symmetric=True), {**GPTQ, "bits": 8, "desc_act": True, "sym": True}),
    "gptq-8bit": (lambda: gptq_layer(8), {**GPTQ, "bits": 8}),
    "ct-w4a16": (lambda: compressed_layer(4), compressed_config("pack-quantized", 4, True)),
    "ct-w4a16-asymmetric": (lambda: compressed_layer(4, symmetric=False), compressed_config("pack-quantized", 4, False)),
    "ct-w8a16": (lambda: compressed_layer(8), compressed_config("pack-quantized", 8, True)),
    "fp8-tensor": (lambda: float8_layer("tensor"), FP8),
    "fp8-block": (lambda: float8_layer("block"), {**FP8, "weight_block_size": [32, 48]}),
    "ct-fp8": (lambda: float8_layer("row"), {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"]}),
    "bnb-nf4": (lambda: bnb_layer("nf4"), BNB),
    "bnb-nf4-nested": (lambda: bnb_layer("nf4", nested=True), {**BNB, "bnb_4bit_use_double_quant": True}),
    "bnb-fp4": (lambda: bnb_layer("fp4"), {**BNB, "bnb_4bit_quant_type": "fp4"}),
    "bnb-int8": (lambda: bnb_layer("int8"), {"quant_method": "bitsandbytes", "load_in_8bit": True}),
    "hqq-4bit": (lambda: hqq_layer(4, 1), hqq_config(4, 1)),
    "hqq-4bit-axis0": (lambda: hqq_layer(4, 0), hqq_config(4, 0)),
    "hqq-8bit": (lambda: hqq_layer(8, 1), hqq_config(8, 1)),
    "hqq-8bit-axis0": (lambda: hqq_layer(8, 0), hqq_config(8, 0)),
    "ct-nvfp4": (lambda: float4_layer("nvfp4"), float4_config("nvfp4")),
    "ct-mxfp4": (lambda: float4_layer("mxfp4"), float4_config("mxfp4")),
    "modelopt-nvfp4": (lambda: float4_layer("modelopt"), float4_config("modelopt")),
    "ct-w8a8": (lambda: compressed_layer(8, fmt="int-quantized"), compressed_config("int-quantized", 8, True)),
}


@torch.no_grad()
def evaluate(weights: Tensors, prompt: list[int]) -> tuple[torch.Tensor, list[int], float]:
    model = AutoModelForCausalLM.from_config(hf_config()).float().eval()
    model.load_state_dict(weights, strict=False)
    logits = model(torch.tensor([prompt]), use_cache=False).logits[0]
    tokens, margin = list(prompt), math.inf
    for _ in range(GREEDY_TOKENS):
        best = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
        tokens.append(int(best.indices[0]))
        margin = min(margin, float(best.values[0] - best.values[1]))
    return logits, tokens[len(prompt) :], margin


@torch.no_grad()
def evaluate_declared(weights: Tensors, prompt: list[int], group: int | None) -> torch.Tensor:
    """With what every projection reads rounded to E4M3: a scale per token, or per token and group of columns."""

    def rounded(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
        groups = inputs[0].split(group or inputs[0].shape[-1], -1)
        scales = [part.abs().amax(-1, keepdim=True) / 448 for part in groups]
        return (torch.cat([(part / scale).to(torch.float8_e4m3fn).float() * scale for part, scale in zip(groups, scales)], -1),)

    model = AutoModelForCausalLM.from_config(hf_config()).float().eval()
    model.load_state_dict(weights, strict=False)
    for name, module in model.named_modules():
        if name.endswith("_proj"):
            module.register_forward_pre_hook(rounded)
    return model(torch.tensor([prompt]), use_cache=False).logits[0]


def main() -> None:
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(SCHEMES)
    weights = float_weights()
    prompt = torch.randint(0, 256, (PROMPT_TOKENS,), generator=torch.Generator().manual_seed(1)).tolist()
    for name in chosen:
        make_layer, quantization = SCHEMES[name]
        layer = make_layer()
        stored, reference = {}, {}
        for key, value in weights.items():
            if "_proj" not in key:
                stored[key] = value.to(torch.bfloat16)
                reference[key] = value
                continue
            tensors, reference[key] = layer(key, value)
            module = key.removesuffix(".weight")
            stored |= {f"{module}.{leaf}": tensor.contiguous() for leaf, tensor in tensors.items()}
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps({**CONFIG, "quantization_config": quantization}, indent=2) + "\n")
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(TOKENIZER / file, folder / file)
        logits, greedy, margin = evaluate(reference, prompt)
        (OUT / f"{name}.logits").write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
        if quantization.get("activation_scheme") == "dynamic":
            declared = evaluate_declared(reference, prompt, quantization.get("weight_block_size", [None, None])[1])
            (OUT / f"{name}.declared").write_bytes(declared.contiguous().numpy().astype("<f4").tobytes())
        (OUT / f"{name}.json").write_text(json.dumps({"prompt": prompt, "greedy": greedy}) + "\n")
        error = math.sqrt(sum(float((reference[k] - weights[k]).square().sum()) for k in weights) / sum(float(v.square().sum()) for v in weights.values()))
        print(f"{name}: weight error {error:.4f}, smallest greedy margin {margin:.4f}, distinct greedy tokens {len(set(greedy))}")


main()
