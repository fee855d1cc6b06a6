#pragma once
#include "half.h"

namespace octavo {

/// Round to nearest, ties to even; overflow becomes infinity, NaN stays NaN.
static inline uint16_t f32_to_f16(float value) {
    const uint32_t bits = float_bits(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        // Adding 0.5 leaves the subnormal's integer, rounded to even, in the low mantissa bits.
        return static_cast<uint16_t>(sign | (float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}

}  // namespace octavo
