"""Blocks of the GGUF types that Octavo repacks, with what the `gguf` package dequantises them to -> packages/artifacts/fixtures/gguf/blocks/.

Bytes are random, scales finite: `<type>.json` holds the blocks as hexadecimal text and the values as numbers.
"""

import json
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/gguf/blocks"
# type -> (bytes of a block, offsets of its f16 fields)
LAYOUTS = {
    "Q4_1": (20, [0, 2]), "Q5_1": (24, [0, 2]), "Q2_K": (84, [80, 82]), "Q3_K": (110, [108]), "IQ4_NL": (18, [0]), "IQ4_XS": (136, [0]),
    "MXFP4": (17, []),
    "IQ2_XXS": (66, [0]), "IQ2_XS": (74, [0]), "IQ2_S": (82, [0]), "IQ3_XXS": (98, [0]), "IQ3_S": (110, [0]), "IQ1_S": (50, [0]), "IQ1_M": (56, []),
    "TQ1_0": (54, [52]), "TQ2_0": (66, [64]), "NVFP4": (36, []),
}

OUT.mkdir(parents=True, exist_ok=True)
for seed, (name, (size, halves)) in enumerate(LAYOUTS.items()):
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (4, size), dtype=np.uint8)
    for offset in halves:
        blocks[:, offset : offset + 2] = random.normal(0, 0.1, 4).astype("<f2").view(np.uint8).reshape(4, 2)
    if name == "MXFP4":
        blocks[:, 0] = [120, 127, 130, 101]
    elif name == "IQ1_M":
        # The f16 scale is in the high nibbles of the four words of scales.
        words, bits = blocks[:, 48:].view("<u2"), random.normal(0, 0.1, (4, 1)).astype("<f2").view("<u2")
        blocks[:, 48:] = ((words & 0x0FFF) | ((bits >> [0, 4, 8, 12]) << 12).astype("<u2")).view(np.uint8)
    elif name == "NVFP4":
        blocks[:, :4] = random.integers(0, 127, (4, 4))
    elif len(halves) == 2:
        # A block without a scale but with an offset is one constant.
        blocks[3, halves[0] : halves[0] + 2] = 0
    values = quants.dequantize(blocks, Type[name]).reshape(-1)
    (OUT / f"{name}.json").write_text(json.dumps({"blocks": blocks.tobytes().hex(), "values": [float(value) for value in values]}) + "\n")
