"""The grids of GGUF's IQ types, as the `gguf` package has them (iq*_grid of ggml-common.h) -> packages/artifacts/src/gguf/low-bits/grids.ts.

Entries are indices into a grid's few magnitudes, 4 bits each, the first lowest; base64 of the bytes.
"""

import base64
from pathlib import Path

import numpy as np
from gguf import quants

OUT = Path(__file__).resolve().parents[2] / "packages/artifacts/src/gguf/low-bits/grids.ts"
GRIDS = {"iq2xxs": quants.IQ2_XXS, "iq2xs": quants.IQ2_XS, "iq2s": quants.IQ2_S, "iq3xxs": quants.IQ3_XXS, "iq3s": quants.IQ3_S, "iq1s": quants.IQ1_S}

lines = [
    "// Written by tools/oracle/make-gguf-grids.py from the `gguf` package.",
    "",
    "/** Grids of GGUF's IQ types (`iq*_grid` of ggml-common.h): each entry's values as indices of 4 bits, the first lowest, in base64. */",
    "export const encodedGrids = {",
]
for name, kind in GRIDS.items():
    kind.init_grid()
    indices = np.zeros(kind.grid.shape, dtype=np.uint8)
    for index, value in enumerate(kind.grid_map):
        indices[kind.grid == value] = index
    flat = indices.reshape(-1)
    text = base64.b64encode((flat[0::2] | (flat[1::2] << 4)).tobytes()).decode()
    lines.append(f"  {name}:")
    pieces = [text[at : at + 110] for at in range(0, len(text), 110)]
    lines += [f'    "{piece}"{"," if at == len(pieces) - 1 else " +"}' for at, piece in enumerate(pieces)]
lines += ["} as const;", ""]
OUT.write_text("\n".join(lines))
