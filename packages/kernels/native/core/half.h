#pragma once
#include <cstdint>
#include <cstring>

namespace octavo {

// `static` keeps each copy inside its own object file: a copy compiled for a wider instruction set must never be the one
// that the linker picks for generic code.

static inline uint32_t float_bits(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_from_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// IEEE binary16, subnormals and non-finite values included. Without branches, so that loops over it become vector code: the
/// multiplication rebiases the exponent and normalises subnormals.
static inline float f16_to_f32(uint16_t half) {
    const uint32_t magnitude = half & 0x7fffu;
    const float value = float_from_bits(magnitude << 13) * 0x1p112f;
    const uint32_t non_finite = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    return float_from_bits(float_bits(value) | static_cast<uint32_t>(half & 0x8000u) << 16 | non_finite);
}

static inline float bf16_to_f32(uint16_t value) { return float_from_bits(static_cast<uint32_t>(value) << 16); }

/// Round to nearest, ties to even; NaN stays NaN.
static inline uint16_t f32_to_bf16(float value) {
    const uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline bool f16_is_finite(uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }
static inline bool bf16_is_finite(uint16_t value) { return (value & 0x7f80u) != 0x7f80u; }
static inline bool f32_is_finite(float value) { return (float_bits(value) & 0x7f800000u) != 0x7f800000u; }

}  // namespace octavo
