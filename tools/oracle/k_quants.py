"""Encoders for llama.cpp's K-quant blocks (layouts: ggml-common.h, `block_q4_K`, `block_q5_K`, `block_q6_K`).

The `gguf` package decodes these types but does not encode them. Each scale is the plain range of its sub-block: enough
for fixtures, where the weights are whatever the file says.
"""

import numpy as np

BLOCK = 256


def halves(values: np.ndarray) -> np.ndarray:
    return values.astype("<f2").view(np.uint8).reshape(len(values), 2)


def pack_scales(scales: np.ndarray, mins: np.ndarray) -> np.ndarray:
    """Eight 6-bit scales and eight 6-bit minimums in 12 bytes: the first four of each whole, the rest split in 4 + 2 bits."""
    return np.concatenate([
        scales[:, :4] | (scales[:, 4:] >> 4) << 6,
        mins[:, :4] | (mins[:, 4:] >> 4) << 6,
        (scales[:, 4:] & 15) | (mins[:, 4:] & 15) << 4,
    ], axis=1)


def affine_blocks(weights: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """q4_K's and q5_K's common part: w = d * scale * q - dmin * min over sub-blocks of 32."""
    parts = weights.reshape(-1, 8, 32)
    low = np.minimum(parts.min(axis=2), 0)
    steps = (parts.max(axis=2) - low) / levels
    d = (steps.max(axis=1) / 63).astype(np.float16).astype(np.float32)
    dmin = (-low.min(axis=1) / 63).astype(np.float16).astype(np.float32)
    scales = np.clip(np.rint(steps / np.where(d > 0, d, 1)[:, None]), 0, 63)
    mins = np.clip(np.rint(-low / np.where(dmin > 0, dmin, 1)[:, None]), 0, 63)
    size = (d[:, None] * scales)[:, :, None]
    quants = np.clip(np.rint((parts + (dmin[:, None] * mins)[:, :, None]) / np.where(size > 0, size, 1)), 0, levels)
    header = np.concatenate([halves(d), halves(dmin), pack_scales(scales.astype(np.uint8), mins.astype(np.uint8))], axis=1)
    return header, quants.astype(np.uint8)


def nibbles(quants: np.ndarray) -> np.ndarray:
    """Sub-blocks 2j and 2j + 1 share 32 bytes: low and high nibbles."""
    return ((quants[:, 0::2] & 15) | (quants[:, 1::2] & 15) << 4).reshape(-1, 128)


def encode_q4_k(weights: np.ndarray) -> np.ndarray:
    header, quants = affine_blocks(weights, 15)
    return np.concatenate([header, nibbles(quants)], axis=1)


def encode_q5_k(weights: np.ndarray) -> np.ndarray:
    header, quants = affine_blocks(weights, 31)
    fifth = np.zeros((len(quants), 32), np.uint8)
    for part in range(8):
        fifth |= (quants[:, part] >> 4) << part
    return np.concatenate([header, fifth, nibbles(quants)], axis=1)


def encode_q6_k(weights: np.ndarray) -> np.ndarray:
    """w = d * scale * (q - 32) over sub-blocks of 16, in two halves of 128."""
    parts = weights.reshape(-1, 16, 16)
    steps = np.abs(parts).max(axis=2) / 31
    d = (steps.max(axis=1) / 127).astype(np.float16).astype(np.float32)
    scales = np.clip(np.rint(steps / np.where(d > 0, d, 1)[:, None]), 1, 127)
    size = (d[:, None] * scales)[:, :, None]
    quants = (np.clip(np.rint(parts / np.where(size > 0, size, 1)), -32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    low = np.concatenate([(quants[:, :, 0] & 15) | (quants[:, :, 2] & 15) << 4, (quants[:, :, 1] & 15) | (quants[:, :, 3] & 15) << 4], axis=2)
    high = (quants[:, :, 0] >> 4) | (quants[:, :, 1] >> 4) << 2 | (quants[:, :, 2] >> 4) << 4 | (quants[:, :, 3] >> 4) << 6
    return np.concatenate([low.reshape(-1, 128), high.reshape(-1, 64), scales.astype(np.int8).view(np.uint8), halves(d)], axis=1)


ENCODERS = {"Q4_K": encode_q4_k, "Q5_K": encode_q5_k, "Q6_K": encode_q6_k}
