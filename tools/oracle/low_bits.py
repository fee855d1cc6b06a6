"""Matrices in GGUF's types of one to three bits: random blocks with the spread of a matrix, since the `gguf` package cannot encode most of them."""

import numpy as np
from gguf import GGML_QUANT_SIZES, quants
from gguf import GGMLQuantizationType as Type

# type -> offset of a block's f16 scale
HALVES = {"IQ2_XXS": 0, "IQ2_XS": 0, "IQ2_S": 0, "IQ3_XXS": 0, "IQ3_S": 0, "IQ1_S": 0, "IQ1_M": None, "TQ1_0": 52, "TQ2_0": 64, "NVFP4": None}
LOW_BITS = tuple(HALVES)


def set_scale(blocks: np.ndarray, kind: str, scale: float) -> None:
    """Gives every block the f16 `scale`; NVFP4 has scales of its own, which get that size."""
    half = np.array([scale], "<f2")
    if kind == "IQ1_M":
        words = blocks[:, 48:].view("<u2")
        blocks[:, 48:] = ((words & 0x0FFF) | ((half.view("<u2") >> [0, 4, 8, 12]) << 12).astype("<u2")).view(np.uint8)
    elif kind == "NVFP4":
        blocks[:, :4] = quants.NVFP4.fp32_to_ue4m3(np.array([scale], np.float32))[0]
    else:
        blocks[:, HALVES[kind] : HALVES[kind] + 2] = half.view(np.uint8)


def random_blocks(value: np.ndarray, kind: str) -> np.ndarray:
    elements, size = GGML_QUANT_SIZES[Type[kind]]
    random = np.random.default_rng(int(abs(value).sum() * 1000))
    blocks = random.integers(0, 256, (value.size // elements, size), dtype=np.uint8)
    set_scale(blocks, kind, 1.0)
    spread = quants.dequantize(blocks, Type[kind]).std()
    set_scale(blocks, kind, value.std() / spread)
    return blocks.reshape(*value.shape[:-1], -1)
