#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../matrix/matrix.h"

namespace octavo::test {

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, the same everywhere.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next();
    /// In [0, bound).
    int below(int bound) { return static_cast<int>(next() % static_cast<uint64_t>(bound)); }
    /// In [-1, 1).
    float uniform() { return static_cast<float>(static_cast<int64_t>(next() >> 40) - (1 << 23)) / 8388608.0f; }
    /// Roughly normal, with a long tail now and then.
    float activation();

private:
    uint64_t state_;
};

/// A random matrix as it would lie on disk, and the weights it stands for.
struct Sample {
    WeightType type;
    int64_t rows;
    int64_t cols;
    int64_t group;
    std::vector<uint8_t> values;
    std::vector<uint8_t> scales;
    std::vector<uint8_t> zeros;
    /// [rows, cols], rounded as the format's own dequantisation rounds.
    std::vector<float> weights;
    std::string name;

    MatrixSource source() const;
    size_t source_bytes() const { return values.size() + scales.size() + zeros.size(); }
};

Sample make_sample(WeightType type, int64_t rows, int64_t cols, int64_t group, bool with_zeros, uint64_t seed);

uint16_t to_f16(float value);

/// One kind of matrix; tests and benchmarks walk the same list.
struct WeightCase {
    WeightType type;
    int64_t group;
    bool zeros;
    const char* label;
    /// Columns come in multiples of this.
    int64_t column_unit;
    /// f16 scales at the start of a block (at the end for q6_k).
    int64_t scale_bytes;
};

constexpr WeightCase kWeightCases[] = {
    {WeightType::f32, 0, false, "f32", 1, 0},
    {WeightType::f16, 0, false, "f16", 1, 0},
    {WeightType::bf16, 0, false, "bf16", 1, 0},
    {WeightType::q4_0, 0, false, "q4_0", 32, 2},
    {WeightType::q5_0, 0, false, "q5_0", 32, 2},
    {WeightType::q8_0, 0, false, "q8_0", 32, 2},
    {WeightType::q4_k, 0, false, "q4_k", 256, 4},
    {WeightType::q5_k, 0, false, "q5_k", 256, 4},
    {WeightType::q6_k, 0, false, "q6_k", 256, 2},
    {WeightType::int8, 32, false, "int8/32", 32, 0},
    {WeightType::int8, 128, false, "int8/128", 128, 0},
    {WeightType::int4, 32, false, "int4/32", 32, 0},
    {WeightType::int4, 64, true, "int4z/64", 64, 0},
    {WeightType::int4, 128, true, "int4z/128", 128, 0},
};

inline bool is_float(WeightType type) {
    return type == WeightType::f32 || type == WeightType::f16 || type == WeightType::bf16;
}

}  // namespace octavo::test
