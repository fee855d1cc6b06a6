"""Encoders for llama.cpp's K-quant and IQ4 blocks (layouts: ggml-common.h, `block_q2_K` and following, `block_iq4_nl`, `block_iq4_xs`).

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


def pairs(quants: np.ndarray) -> np.ndarray:
    """Two bits each: element 128n + 32j + l in bits 2j of byte 32n + l."""
    parts = quants.reshape(-1, 2, 4, 32) & 3
    return (parts[:, :, 0] | parts[:, :, 1] << 2 | parts[:, :, 2] << 4 | parts[:, :, 3] << 6).reshape(-1, 64)


def encode_q2_k(weights: np.ndarray) -> np.ndarray:
    """w = d * scale * q - dmin * min over sub-blocks of 16."""
    parts = weights.reshape(-1, 16, 16)
    low = np.minimum(parts.min(axis=2), 0)
    steps = (parts.max(axis=2) - low) / 3
    d = (steps.max(axis=1) / 15).astype(np.float16).astype(np.float32)
    dmin = (-low.min(axis=1) / 15).astype(np.float16).astype(np.float32)
    scales = np.clip(np.rint(steps / np.where(d > 0, d, 1)[:, None]), 0, 15)
    mins = np.clip(np.rint(-low / np.where(dmin > 0, dmin, 1)[:, None]), 0, 15)
    size = (d[:, None] * scales)[:, :, None]
    quants = np.clip(np.rint((parts + (dmin[:, None] * mins)[:, :, None]) / np.where(size > 0, size, 1)), 0, 3)
    header = scales.astype(np.uint8) | mins.astype(np.uint8) << 4
    return np.concatenate([header, pairs(quants.astype(np.uint8)), halves(d), halves(dmin)], axis=1)


def encode_q3_k(weights: np.ndarray) -> np.ndarray:
    """w = d * (scale - 32) * (q - 4) over sub-blocks of 16."""
    parts = weights.reshape(-1, 16, 16)
    steps = np.abs(parts).max(axis=2) / 3.5
    d = (steps.max(axis=1) / 31).astype(np.float16).astype(np.float32)
    scales = np.clip(np.rint(steps / np.where(d > 0, d, 1)[:, None]), 1, 31)
    size = (d[:, None] * scales)[:, :, None]
    quants = (np.clip(np.rint(parts / np.where(size > 0, size, 1)), -4, 3) + 4).astype(np.uint8).reshape(-1, 256)
    third = np.zeros((len(quants), 32), np.uint8)
    for part in range(8):
        third |= (quants[:, 32 * part : 32 * part + 32] >> 2) << part
    stored = (scales + 32).astype(np.uint8)
    low = (stored[:, :8] & 15) | (stored[:, 8:] & 15) << 4
    high = np.zeros((len(quants), 4), np.uint8)
    for part in range(4):
        high |= (stored[:, 4 * part : 4 * part + 4] >> 4) << (2 * part)
    return np.concatenate([third, pairs(quants), low, high, halves(d)], axis=1)


IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def nearest_iq4(scaled: np.ndarray) -> np.ndarray:
    return np.abs(scaled[..., None] - IQ4_VALUES).argmin(axis=-1).astype(np.uint8)


def split_nibbles(quants: np.ndarray) -> np.ndarray:
    """Element i of 32 in the low nibble of byte i, element i + 16 in the high one."""
    parts = quants.reshape(-1, 2, 16)
    return parts[:, 0] | parts[:, 1] << 4


def encode_iq4_nl(weights: np.ndarray) -> np.ndarray:
    """w = d * value(q)"""
    blocks = weights.reshape(-1, 32)
    d = (np.abs(blocks).max(axis=1) / 113).astype(np.float16).astype(np.float32)
    return np.concatenate([halves(d), split_nibbles(nearest_iq4(blocks / np.where(d > 0, d, 1)[:, None]))], axis=1)


def encode_iq4_xs(weights: np.ndarray) -> np.ndarray:
    """w = d * (scale - 32) * value(q) over sub-blocks of 32."""
    parts = weights.reshape(-1, 8, 32)
    steps = np.abs(parts).max(axis=2) / 113
    d = (steps.max(axis=1) / 31).astype(np.float16).astype(np.float32)
    scales = np.clip(np.rint(steps / np.where(d > 0, d, 1)[:, None]), 1, 31)
    size = (d[:, None] * scales)[:, :, None]
    codes = split_nibbles(nearest_iq4(parts / np.where(size > 0, size, 1))).reshape(-1, 128)
    stored = (scales + 32).astype(np.uint8)
    high = np.zeros(len(parts), "<u2")
    for part in range(8):
        high |= (stored[:, part].astype("<u2") >> 4) << (2 * part)
    low = (stored[:, 0::2] & 15) | (stored[:, 1::2] & 15) << 4
    return np.concatenate([halves(d), high.view(np.uint8).reshape(-1, 2), low, codes], axis=1)


ENCODERS = {
    "Q4_K": encode_q4_k, "Q5_K": encode_q5_k, "Q6_K": encode_q6_k, "Q2_K": encode_q2_k, "Q3_K": encode_q3_k,
    "IQ4_NL": encode_iq4_nl, "IQ4_XS": encode_iq4_xs,
}
# Of the largest weight: what one code may be off.
WORST_ERRORS = {"Q2_K": 0.4, "Q3_K": 0.2, "IQ4_NL": 0.12, "IQ4_XS": 0.12}
