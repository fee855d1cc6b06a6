#include "samples.h"

#include "../../core/half.h"

namespace octavo::test {

uint64_t Random::next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

float Random::activation() {
    const float bell = uniform() + uniform() + uniform();
    return below(64) == 0 ? 8 * bell : bell;
}

uint16_t to_f16(float value) {
    // Truncation is enough: the value that counts is the one the bits mean.
    const uint32_t bits = float_bits(value);
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    const int exponent = static_cast<int>(bits >> 23 & 0xff) - 112;
    if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7bffu);
    if (exponent >= 1) return static_cast<uint16_t>(sign | exponent << 10 | (bits >> 13 & 0x3ffu));
    if (exponent < -10) return sign;
    return static_cast<uint16_t>(sign | ((bits & 0x7fffffu) | 0x800000u) >> (14 - exponent));
}

MatrixSource Sample::source() const {
    return {type,
            rows,
            cols,
            values.data(),
            scales.empty() ? nullptr : scales.data(),
            zeros.empty() ? nullptr : zeros.data(),
            group,
            name,
            nullptr,
            {},
            table};
}

}  // namespace octavo::test
