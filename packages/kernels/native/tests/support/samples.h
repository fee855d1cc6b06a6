#pragma once
#include <cstdint>
#include <cstring>
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

uint16_t to_f16(float value);

template <class T>
inline void append(std::vector<uint8_t>& bytes, T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Columns of a group that no row outgrows.
constexpr int64_t kWholeRow = 1 << 20;

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
    bool scales_end_block() const { return type == WeightType::q2_k || type == WeightType::q3_k || type == WeightType::q6_k; }
    /// table4 only: 16 values.
    const float* table = nullptr;
    /// How far, relatively, a weight as it is multiplied may be from what it stands for.
    double rounding = 0;
};

/// Integers with plain groups name them by their size, also when they are rows.
inline int64_t group_of(const WeightCase& weight, int64_t cols) {
    return weight.type == WeightType::int8 && weight.group == kWholeRow ? cols : weight.group;
}

constexpr float kNf4Values[16] = {-1.0f,        -0.6961928f,  -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f,
                                  -0.09105004f, 0.0f,         0.0795803f,   0.1609302f,  0.2461123f,   0.33791524f,
                                  0.44070983f,  0.562617f,    0.72295684f,  1.0f};
constexpr float kFp4Values[16] = {0.0f, 1.0f / 192, 2.0f / 3,  1.0f,  1.0f / 3,  0.5f,  1.0f / 6,  0.25f,
                                  0.0f, -1.0f / 192, -2.0f / 3, -1.0f, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f};
constexpr float kPlainValues[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
/// kvalues_iq4nl of ggml-common.h.
constexpr int kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// E2M1 (OCP Microscaling Formats, version 1.0), without its sign.
constexpr float kE2m1Values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
/// Largest relative error of rounding a weight, or a table's entries, to bf16.
constexpr double kBf16Rounding = 1.0 / 256;

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
