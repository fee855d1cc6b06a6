#pragma once
#include <cstdint>
#include <cstring>

namespace octavo::test {

inline bool same_bits(const float* a, const float* b, int64_t count) {
    return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

/// More than any instruction set multiplies without unpacking.
constexpr int64_t kManyRows = 70;

/// Sum order and product rounding differ from the double reference by a few units in the last place of the largest
/// partial sum, which the sum of magnitudes bounds.
constexpr double kTolerance = 2e-6;

}  // namespace octavo::test
