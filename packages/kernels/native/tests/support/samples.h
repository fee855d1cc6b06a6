#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../../matrix/matrix.h"

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
    std::vector<float> table = {};
    double rounding = 0;

    MatrixSource source() const;
    size_t source_bytes() const { return values.size() + scales.size() + zeros.size(); }
};

struct WeightCase;

Sample make_sample(const WeightCase& weight, int64_t rows, int64_t cols, uint64_t seed);
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
    /// Scales in floating point at the start of a block (at the end for q2_k, q3_k and q6_k).
    int64_t scale_bytes;
    /// table4 only: 16 values.
    const float* table = nullptr;
    /// How far, relatively, a weight as it is multiplied may be from what it stands for.
    double rounding = 0;
};

constexpr float kNf4Values[16] = {-1.0f,        -0.6961928f,  -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f,
                                  -0.09105004f, 0.0f,         0.0795803f,   0.1609302f,  0.2461123f,   0.33791524f,
                                  0.44070983f,  0.562617f,    0.72295684f,  1.0f};
constexpr float kFp4Values[16] = {0.0f, 1.0f / 192, 2.0f / 3,  1.0f,  1.0f / 3,  0.5f,  1.0f / 6,  0.25f,
                                  0.0f, -1.0f / 192, -2.0f / 3, -1.0f, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f};
constexpr float kPlainValues[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
/// Of a weight, or of all of a table's entries, to bf16.
constexpr double kBf16Rounding = 1.0 / 256;

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
    {WeightType::q4_1, 0, false, "q4_1", 32, 4},
    {WeightType::q5_1, 0, false, "q5_1", 32, 4},
    {WeightType::q2_k, 0, false, "q2_k", 256, 4},
    {WeightType::q3_k, 0, false, "q3_k", 256, 2},
    {WeightType::iq4_nl, 0, false, "iq4_nl", 32, 2},
    {WeightType::iq4_xs, 0, false, "iq4_xs", 256, 2},
    {WeightType::mxfp4, 0, false, "mxfp4", 32, 1},
    {WeightType::int2, 64, true, "int2z/64", 64, 0},
    {WeightType::int3, 128, true, "int3z/128", 128, 0},
    {WeightType::uint8, 64, true, "uint8z/64", 64, 0},
    {WeightType::f8_e4m3, 128, false, "f8_e4m3/128", 1, 0},
    {WeightType::f8_e4m3, 1 << 20, false, "f8_e4m3/row", 1, 0},
    {WeightType::f8_e4m3, 27, false, "f8_e4m3/27", 1, 0, nullptr, kBf16Rounding},
    {WeightType::uint8, 1, true, "uint8z/1", 1, 0, nullptr, kBf16Rounding},
    {WeightType::table4, 64, false, "nf4/64", 2, 0, kNf4Values, kBf16Rounding},
    {WeightType::table4, 48, false, "fp4/48", 2, 0, kFp4Values},
    {WeightType::table4, 1, true, "table4z/1", 2, 0, kPlainValues, kBf16Rounding},
};

/// Decoded to floats in order to be multiplied.
inline bool is_codebook(WeightType type, int64_t group) {
    return type == WeightType::f8_e4m3 || (type == WeightType::uint8 && group % 32 != 0) || type == WeightType::table4;
}

inline bool is_float(WeightType type) {
    return type == WeightType::f32 || type == WeightType::f16 || type == WeightType::bf16;
}

inline std::vector<float> activations(int64_t count, uint64_t seed) {
    Random random(seed);
    std::vector<float> x(static_cast<size_t>(count));
    for (float& value : x) value = random.activation();
    return x;
}

}  // namespace octavo::test
