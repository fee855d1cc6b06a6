#include "samples.h"

#include <cmath>
#include <cstring>

#include "../../core/half.h"

namespace octavo::test {

namespace {

template <class T>
void append(std::vector<uint8_t>& bytes, T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// kvalues_iq4nl of ggml-common.h.
constexpr int kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// E2M1 (OCP Microscaling Formats, version 1.0), without its sign.
constexpr float kE2m1Values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

/// Writes GGUF blocks from codes and scales drawn at random, noting the weights they mean: the inverse of what packing reads,
/// written from the format's definition.
class Encoder {
public:
    Encoder(Sample& sample, uint64_t seed) : sample_(sample), random_(seed) {}

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
                for (int i = 0; i < 16; ++i) {
                    append(sample_.values, static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4));
                }
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

    /// Nibbles of 32 columns, the sixteen first ones low.
    void nibbles(const int (&codes)[32]) {
        for (int i = 0; i < 16; ++i) append(sample_.values, static_cast<uint8_t>(codes[i] | codes[i + 16] << 4));
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
    void coded(bool with_zeros) {
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

}  // namespace

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

Sample make_sample(WeightType type, int64_t rows, int64_t cols, int64_t group, bool with_zeros, uint64_t seed) {
    return make_sample({type, group, with_zeros, "", 1, 0}, rows, cols, seed);
}

Sample make_sample(const WeightCase& weight, int64_t rows, int64_t cols, uint64_t seed) {
    Sample sample{weight.type, rows, cols, weight.group, {}, {}, {}, {}, "layer." + std::to_string(seed) + ".weight"};
    if (weight.table != nullptr) sample.table.assign(weight.table, weight.table + 16);
    sample.rounding = weight.rounding;
    Encoder encoder(sample, seed);
    switch (weight.type) {
        case WeightType::f32:
        case WeightType::f16:
        case WeightType::bf16:
            encoder.floats();
            break;
        case WeightType::q4_0:
            encoder.plain_blocks(4);
            break;
        case WeightType::q5_0:
            encoder.plain_blocks(5);
            break;
        case WeightType::q8_0:
            encoder.plain_blocks(8);
            break;
        case WeightType::q4_k:
            encoder.super_blocks(4);
            break;
        case WeightType::q5_k:
            encoder.super_blocks(5);
            break;
        case WeightType::q6_k:
            encoder.q6_k();
            break;
        case WeightType::q4_1:
            encoder.plain_blocks(4, true);
            break;
        case WeightType::q5_1:
            encoder.plain_blocks(5, true);
            break;
        case WeightType::q2_k:
            encoder.q2_k();
            break;
        case WeightType::q3_k:
            encoder.q3_k();
            break;
        case WeightType::iq4_nl:
            encoder.iq4_nl();
            break;
        case WeightType::iq4_xs:
            encoder.iq4_xs();
            break;
        case WeightType::mxfp4:
            encoder.mxfp4();
            break;
        case WeightType::int2:
            encoder.fields(2);
            break;
        case WeightType::int3:
            encoder.fields(3);
            break;
        case WeightType::int8:
        case WeightType::int4:
            encoder.groups(weight.zeros);
            break;
        case WeightType::f8_e4m3:
        case WeightType::uint8:
        case WeightType::table4:
            encoder.coded(weight.zeros);
            break;
    }
    return sample;
}

}  // namespace octavo::test
