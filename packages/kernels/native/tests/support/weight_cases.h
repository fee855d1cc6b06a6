#pragma once
#include <cmath>
#include <cstring>

#include "../../core/half.h"
#include "samples.h"

namespace octavo::test {

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
    {WeightType::int8, kWholeRow, false, "int8/row", 32, 0},
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
    {WeightType::f8_e4m3, kWholeRow, false, "f8_e4m3/row", 1, 0},
    {WeightType::f8_e4m3, 27, false, "f8_e4m3/27", 1, 0, nullptr, kBf16Rounding},
    {WeightType::uint8, 1, true, "uint8z/1", 1, 0, nullptr, kBf16Rounding},
    {WeightType::table4, 64, false, "nf4/64", 2, 0, kNf4Values, kBf16Rounding},
    {WeightType::table4, 48, false, "fp4/48", 2, 0, kFp4Values},
    {WeightType::table4, 1, true, "table4z/1", 2, 0, kPlainValues, kBf16Rounding},
};

/// Writes GGUF blocks from codes and scales drawn at random, noting the weights they mean: the inverse of what packing reads,
/// written from the format's definition.
class Encoder {
public:
    Encoder(Sample& sample, uint64_t seed) : sample_(sample), random_(seed) {}

    void encode(const WeightCase& weight) {
        switch (weight.type) {
            case WeightType::f32:
            case WeightType::f16:
            case WeightType::bf16: return floats();
            case WeightType::q4_0: return plain_blocks(4);
            case WeightType::q5_0: return plain_blocks(5);
            case WeightType::q8_0: return plain_blocks(8);
            case WeightType::q4_k: return super_blocks(4);
            case WeightType::q5_k: return super_blocks(5);
            case WeightType::q6_k: return q6_k();
            case WeightType::q4_1: return plain_blocks(4, true);
            case WeightType::q5_1: return plain_blocks(5, true);
            case WeightType::q2_k: return q2_k();
            case WeightType::q3_k: return q3_k();
            case WeightType::iq4_nl: return iq4_nl();
            case WeightType::iq4_xs: return iq4_xs();
            case WeightType::mxfp4: return mxfp4();
            case WeightType::int2: return fields(2);
            case WeightType::int3: return fields(3);
            case WeightType::int8: case WeightType::int4: return groups(weight.zeros);
            case WeightType::f8_e4m3:
            case WeightType::uint8:
            case WeightType::table4: return codebook(weight.zeros);
        }
    }

    void floats() {
        for (int64_t i = 0; i < sample_.rows * sample_.cols; ++i) {
            const float value = random_.uniform();
            if (sample_.type == WeightType::f32) {
                append(sample_.values, value);
                note(value);
            } else if (sample_.type == WeightType::f16) {
                const uint16_t half = to_f16(i % 97 == 0 ? value * 6e-5f : value);
                append(sample_.values, half);
                note(f16_to_f32(half));
            } else {
                const uint16_t half = f32_to_bf16(value);
                append(sample_.values, half);
                note(bf16_to_f32(half));
            }
        }
    }

    /// Q4_0, Q5_0, Q8_0, and with minimum Q4_1, Q5_1.
    void plain_blocks(int bits, bool with_minimum = false) {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 32; ++b) {
            const uint16_t d = scale();
            append(sample_.values, d);
            const uint16_t m = with_minimum ? scale() : 0;
            if (with_minimum) append(sample_.values, m);
            int codes[32];
            for (int& code : codes) code = random_.below(1 << bits);
            const int zero = with_minimum ? 0 : 1 << (bits - 1);
            if (bits == 5) {
                uint32_t high = 0;
                for (int i = 0; i < 32; ++i) high |= static_cast<uint32_t>(codes[i] >> 4) << i;
                append(sample_.values, high);
            }
            if (bits == 8) {
                for (const int code : codes) append(sample_.values, static_cast<int8_t>(code - zero));
            } else {
                nibbles(codes);
            }
            for (const int code : codes) {
                const float scaled = f16_to_f32(d) * static_cast<float>(code - zero);
                note(with_minimum ? scaled + f16_to_f32(m) : scaled);
            }
        }
    }

    /// Q4_K, Q5_K.
    void super_blocks(int bits) {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 256; ++b) {
            const uint16_t d = scale();
            const uint16_t dmin = scale();
            int scales[8];
            int minima[8];
            for (int g = 0; g < 8; ++g) {
                scales[g] = random_.below(64);
                minima[g] = random_.below(64);
            }
            int codes[256];
            for (int& code : codes) code = random_.below(1 << bits);
            append(sample_.values, d);
            append(sample_.values, dmin);
            uint8_t packed[12];
            for (int g = 0; g < 4; ++g) {
                packed[g] = static_cast<uint8_t>(scales[g] | (scales[g + 4] >> 4) << 6);
                packed[g + 4] = static_cast<uint8_t>(minima[g] | (minima[g + 4] >> 4) << 6);
                packed[g + 8] = static_cast<uint8_t>((scales[g + 4] & 15) | (minima[g + 4] & 15) << 4);
            }
            for (const uint8_t byte : packed) append(sample_.values, byte);
            if (bits == 5) {
                for (int i = 0; i < 32; ++i) {
                    int plane = 0;
                    for (int g = 0; g < 8; ++g) plane |= (codes[32 * g + i] >> 4) << g;
                    append(sample_.values, static_cast<uint8_t>(plane));
                }
            }
            for (int pair = 0; pair < 4; ++pair) {
                for (int i = 0; i < 32; ++i) {
                    append(sample_.values,
                           static_cast<uint8_t>((codes[64 * pair + i] & 15) | (codes[64 * pair + 32 + i] & 15) << 4));
                }
            }
            for (int i = 0; i < 256; ++i) {
                const float step = f16_to_f32(d) * static_cast<float>(scales[i / 32]);
                const float minimum = f16_to_f32(dmin) * static_cast<float>(minima[i / 32]);
                note(step * static_cast<float>(codes[i]) - minimum);
            }
        }
    }

    /// Bit pairs of 128 columns in 32 bytes, four columns that are 32 apart in each.
    void bit_pairs(const int (&codes)[256]) {
        for (int i = 0; i < 64; ++i) {
            int byte = 0;
            for (int j = 0; j < 4; ++j) byte |= (codes[i / 32 * 128 + 32 * j + i % 32] & 3) << (2 * j);
            append(sample_.values, static_cast<uint8_t>(byte));
        }
    }

    void q2_k() {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 256; ++b) {
            int codes[256];
            for (int& code : codes) code = random_.below(4);
            int scales[16];
            int minima[16];
            for (int g = 0; g < 16; ++g) {
                scales[g] = random_.below(16);
                minima[g] = random_.below(16);
                append(sample_.values, static_cast<uint8_t>(scales[g] | minima[g] << 4));
            }
            bit_pairs(codes);
            const uint16_t d = scale();
            const uint16_t dmin = scale();
            append(sample_.values, d);
            append(sample_.values, dmin);
            for (int i = 0; i < 256; ++i) {
                const float step = f16_to_f32(d) * static_cast<float>(scales[i / 16]);
                note(step * static_cast<float>(codes[i]) - f16_to_f32(dmin) * static_cast<float>(minima[i / 16]));
            }
        }
    }

    void q3_k() {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 256; ++b) {
            int codes[256];
            for (int& code : codes) code = random_.below(8);
            for (int i = 0; i < 32; ++i) {
                int third = 0;
                for (int g = 0; g < 8; ++g) third |= (codes[32 * g + i] >> 2) << g;
                append(sample_.values, static_cast<uint8_t>(third));
            }
            bit_pairs(codes);
            int scales[16];
            for (int& s : scales) s = random_.below(64);
            for (int i = 0; i < 8; ++i) append(sample_.values, static_cast<uint8_t>((scales[i] & 15) | (scales[i + 8] & 15) << 4));
            for (int i = 0; i < 4; ++i) {
                int high = 0;
                for (int j = 0; j < 4; ++j) high |= (scales[4 * j + i] >> 4) << (2 * j);
                append(sample_.values, static_cast<uint8_t>(high));
            }
            const uint16_t d = scale();
            append(sample_.values, d);
            for (int i = 0; i < 256; ++i) {
                const float step = f16_to_f32(d) * static_cast<float>(scales[i / 16] - 32);
                note(step * static_cast<float>(codes[i] - 4));
            }
        }
    }

    /// Low nibbles of 32 codes, those of the first sixteen below the others.
    void nibbles(const int (&codes)[32]) {
        for (int i = 0; i < 16; ++i) append(sample_.values, static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4));
    }

    void iq4_nl() {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 32; ++b) {
            const uint16_t d = scale();
            append(sample_.values, d);
            int codes[32];
            for (int& code : codes) code = random_.below(16);
            nibbles(codes);
            for (const int code : codes) note(f16_to_f32(d) * static_cast<float>(kIq4Values[code]));
        }
    }

    void iq4_xs() {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 256; ++b) {
            const uint16_t d = scale();
            append(sample_.values, d);
            int scales[8];
            int high = 0;
            for (int g = 0; g < 8; ++g) {
                scales[g] = random_.below(64);
                high |= (scales[g] >> 4) << (2 * g);
            }
            append(sample_.values, static_cast<uint16_t>(high));
            for (int g = 0; g < 8; g += 2) append(sample_.values, static_cast<uint8_t>((scales[g] & 15) | (scales[g + 1] & 15) << 4));
            for (const int s : scales) {
                int codes[32];
                for (int& code : codes) code = random_.below(16);
                nibbles(codes);
                const float step = f16_to_f32(d) * static_cast<float>(s - 32);
                for (const int code : codes) note(step * static_cast<float>(kIq4Values[code]));
            }
        }
    }

    void mxfp4() {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 32; ++b) {
            const int exponent = 112 + random_.below(16);
            append(sample_.values, static_cast<uint8_t>(exponent));
            int codes[32];
            for (int& code : codes) code = random_.below(16);
            nibbles(codes);
            // Integer codes know one zero.
            for (const int code : codes) note(std::ldexp(kE2m1Values[code & 7] * (code < 8 ? 1.0f : -1.0f), exponent - 127) + 0.0f);
        }
    }

    /// int2, int3: fields of so many bits, the first in the lowest.
    void fields(int bits) {
        uint64_t pending = 0;
        int num_pending = 0;
        for (int64_t g = 0; g < sample_.rows * sample_.cols / sample_.group; ++g) {
            const float step = 0.001f + std::fabs(random_.uniform()) * 0.02f;
            const float zero = static_cast<float>(random_.below(1 << bits)) + (g % 2 == 0 ? 0.0f : 0.5f);
            append(sample_.scales, step);
            append(sample_.zeros, zero);
            for (int64_t i = 0; i < sample_.group; ++i) {
                const int code = random_.below(1 << bits);
                note(step * (static_cast<float>(code) - zero));
                pending |= static_cast<uint64_t>(code) << num_pending;
                for (num_pending += bits; num_pending >= 8; num_pending -= 8, pending >>= 8) {
                    append(sample_.values, static_cast<uint8_t>(pending));
                }
            }
        }
    }

    void q6_k() {
        for (int64_t b = 0; b < sample_.rows * sample_.cols / 256; ++b) {
            int codes[256];
            for (int& code : codes) code = random_.below(64);
            int8_t scales[16];
            for (int8_t& s : scales) s = static_cast<int8_t>(random_.below(256) - 128);
            for (int half = 0; half < 2; ++half) {
                for (int i = 0; i < 64; ++i) {
                    append(sample_.values,
                           static_cast<uint8_t>((codes[128 * half + i] & 15) | (codes[128 * half + 64 + i] & 15) << 4));
                }
            }
            for (int half = 0; half < 2; ++half) {
                for (int i = 0; i < 32; ++i) {
                    int high = 0;
                    for (int q = 0; q < 4; ++q) high |= (codes[128 * half + 32 * q + i] >> 4) << (2 * q);
                    append(sample_.values, static_cast<uint8_t>(high));
                }
            }
            for (const int8_t s : scales) append(sample_.values, s);
            const uint16_t d = scale();
            append(sample_.values, d);
            for (int i = 0; i < 256; ++i) {
                const float step = f16_to_f32(d) * static_cast<float>(scales[i / 16]);
                note(step * static_cast<float>(codes[i] - 32));
            }
        }
    }

    void groups(bool with_zeros) {
        const bool bytes = sample_.type == WeightType::int8;
        for (int64_t g = 0; g < sample_.rows * sample_.cols / sample_.group; ++g) {
            const float step = 0.001f + std::fabs(random_.uniform()) * 0.02f;
            // Zero points are whole in AWQ and GPTQ, fractions in HQQ.
            const float zero = with_zeros ? (g % 2 == 0 ? static_cast<float>(random_.below(16)) : 7.0f + 4 * random_.uniform()) : 8.0f;
            append(sample_.scales, step);
            if (with_zeros) append(sample_.zeros, zero);
            int previous = 0;
            for (int64_t i = 0; i < sample_.group; ++i) {
                const int code = bytes ? random_.below(256) - 128 : random_.below(16);
                if (bytes) {
                    append(sample_.values, static_cast<int8_t>(code));
                    note(step * static_cast<float>(code));
                } else {
                    if (i % 2 == 1) append(sample_.values, static_cast<uint8_t>(previous | code << 4));
                    previous = code;
                    note(step * (static_cast<float>(code) - zero));
                }
            }
        }
    }

    /// f8_e4m3, uint8, table4; the last group of a row may be shorter.
    void codebook(bool with_zeros) {
        for (int64_t row = 0; row < sample_.rows; ++row) {
            float step = 0;
            float zero = 0;
            int previous = 0;
            for (int64_t c = 0; c < sample_.cols; ++c) {
                if (c % sample_.group == 0) {
                    step = 0.001f + std::fabs(random_.uniform()) * 0.02f;
                    append(sample_.scales, step);
                    if (with_zeros) append(sample_.zeros, zero = 7.0f + 4 * random_.uniform());
                }
                const int code = random_.below(sample_.type == WeightType::table4 ? 16 : 256);
                if (sample_.type == WeightType::table4) {
                    if (c % 2 == 1) append(sample_.values, static_cast<uint8_t>(previous | code << 4));
                    previous = code;
                    note(step * (sample_.table[static_cast<size_t>(code)] - zero));
                } else if (sample_.type == WeightType::uint8) {
                    append(sample_.values, static_cast<uint8_t>(code));
                    note(step * (static_cast<float>(code) - zero));
                } else {
                    // Codes of NaN lose their last bit.
                    const int number = (code & 0x7f) == 0x7f ? code - 1 : code;
                    append(sample_.values, static_cast<uint8_t>(number));
                    const int exponent = number >> 3 & 15;
                    const double mantissa = exponent == 0 ? (number & 7) / 8.0 : 1 + (number & 7) / 8.0;
                    const double magnitude = std::ldexp(mantissa, exponent == 0 ? -6 : exponent - 7);
                    note(step * static_cast<float>(number < 128 ? magnitude : -magnitude));
                }
            }
        }
    }

private:
    void note(float weight) { sample_.weights.push_back(weight); }
    uint16_t scale() { return to_f16(random_.uniform() * 0.02f); }

    Sample& sample_;
    Random random_;
};

inline Sample make_sample(const WeightCase& weight, int64_t rows, int64_t cols, uint64_t seed) {
    Sample sample{weight.type, rows, cols, group_of(weight, cols), {}, {}, {}, {}, "layer." + std::to_string(seed) + ".weight"};
    if (weight.table != nullptr) sample.table.assign(weight.table, weight.table + 16);
    sample.rounding = weight.rounding;
    Encoder(sample, seed).encode(weight);
    return sample;
}

inline Sample make_sample(WeightType type, int64_t rows, int64_t cols, int64_t group, bool with_zeros, uint64_t seed) {
    return make_sample({type, group, with_zeros, "", 1, 0}, rows, cols, seed);
}

}  // namespace octavo::test
