#pragma once
#include <cstring>

#include "../../core/half.h"
#include "../layout.h"
#include "codebook_kernels.h"

// The decoding of panels of codes; included after an instruction set's vocabulary. Plain loops over the 16 rows are those that
// compilers turn into vectors of any instruction set. Without `restrict` the codes, being bytes, might be what is written to, and
// the loops would stay scalar.
namespace octavo {
namespace {

struct CodesF8 {
    static constexpr bool kNibbles = false;
    explicit CodesF8(const float*) {}
    void load(const uint8_t* __restrict codes, float* __restrict even, float* __restrict odd) const {
        // Moved to the places of an f16's fields, a code means 2^-8 of its value, subnormals included.
        uint16_t low[kPanelRows];
        uint16_t high[kPanelRows];
        uint16_t pairs[kPanelRows];
        std::memcpy(pairs, codes, sizeof pairs);
        for (int i = 0; i < kPanelRows; ++i) {
            low[i] = static_cast<uint16_t>((pairs[i] & 0x80) << 8 | (pairs[i] & 0x7f) << 7);
            high[i] = static_cast<uint16_t>((pairs[i] & 0x8000) | (pairs[i] & 0x7f00) >> 1);
        }
        V::store_f32(even, V::load_f16(reinterpret_cast<const uint8_t*>(low)));
        V::store_f32(odd, V::load_f16(reinterpret_cast<const uint8_t*>(high)));
        for (int i = 0; i < kPanelRows; ++i) {
            even[i] *= 256.0f;
            odd[i] *= 256.0f;
        }
    }
};

struct CodesU8 {
    static constexpr bool kNibbles = false;
    explicit CodesU8(const float*) {}
    void load(const uint8_t* __restrict codes, float* __restrict even, float* __restrict odd) const {
        uint16_t pairs[kPanelRows];
        std::memcpy(pairs, codes, sizeof pairs);
        for (int i = 0; i < kPanelRows; ++i) {
            even[i] = static_cast<float>(pairs[i] & 0xff);
            odd[i] = static_cast<float>(pairs[i] >> 8);
        }
    }
};

struct CodesTable4 {
    static constexpr bool kNibbles = true;
    FloatTable table;
    explicit CodesTable4(const float* entries) : table(entries) {}
    void load(const uint8_t* __restrict codes, float* __restrict even, float* __restrict odd) const {
        SIMD_UNROLL
        for (int i = 0; i < kPanelRows; i += Vec::width) {
            const IntVec index = widen_u8(codes + i);
            store(even + i, table.look_up(index));
            store(odd + i, table.look_up(shift_right<4>(index)));
        }
    }
};

/// f32_to_bf16 for finite values, in the upper half of the word.
inline uint32_t rounded_bits(float value) {
    const uint32_t bits = float_bits(value);
    return (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
}

/// One pair of columns of a tile; `Pairs` as in CodebookKernelTable.
template <bool Pairs>
inline void store_pair(const float* __restrict even, const float* __restrict odd, uint8_t* __restrict out) {
    if constexpr (Pairs) {
        uint32_t words[kPanelRows];
        for (int i = 0; i < kPanelRows; ++i) words[i] = rounded_bits(even[i]) >> 16 | rounded_bits(odd[i]);
        std::memcpy(out, words, sizeof words);
    } else {
        float rounded[2 * kPanelRows];
        for (int i = 0; i < kPanelRows; ++i) rounded[i] = float_from_bits(rounded_bits(even[i]));
        for (int i = 0; i < kPanelRows; ++i) rounded[kPanelRows + i] = float_from_bits(rounded_bits(odd[i]));
        std::memcpy(out, rounded, sizeof rounded);
    }
}

template <bool Pairs>
constexpr int64_t kTilePairBytes = (Pairs ? 4 : 8) * kPanelRows;

template <class Codes, bool Pairs>
void decode_values(const uint8_t* codes, int64_t pairs, const float* table, const uint8_t* next, void* tile) {
    const Codes source(table);
    uint8_t* out = static_cast<uint8_t*>(tile);
    for (int64_t p = 0; p < pairs; ++p, out += kTilePairBytes<Pairs>) {
        constexpr int64_t kBytes = codebook_pair_bytes(Codes::kNibbles);
        __builtin_prefetch(next + p * kBytes);
        if constexpr (Pairs) {
            float even[kPanelRows];
            float odd[kPanelRows];
            source.load(codes + p * kBytes, even, odd);
            store_pair<Pairs>(even, odd, out);
        } else {
            float* columns = reinterpret_cast<float*>(out);
            source.load(codes + p * kBytes, columns, columns + kPanelRows);
        }
    }
}

template <class Codes, bool Pairs>
void decode_weights(const uint8_t* codes, int64_t pairs, const float* table, const GroupScales& scaling, int64_t first, void* tile) {
    const Codes source(table);
    uint8_t* out = static_cast<uint8_t*>(tile);
    const float* meta = scaling.meta + first / scaling.group * 2 * kPanelRows;
    int64_t left = scaling.group - first % scaling.group;
    // Scales and zeros of the next column.
    const auto next_column = [&] {
        if (left == 0) {
            meta += 2 * kPanelRows;
            left = scaling.group;
        }
        --left;
        return meta;
    };
    for (int64_t p = 0; p < pairs; ++p, out += kTilePairBytes<Pairs>) {
        float even[kPanelRows];
        float odd[kPanelRows];
        source.load(codes + p * codebook_pair_bytes(Codes::kNibbles), even, odd);
        const float* of_even = next_column();
        for (int i = 0; i < kPanelRows; ++i) even[i] = of_even[i] * (even[i] - of_even[kPanelRows + i]);
        const float* of_odd = next_column();
        for (int i = 0; i < kPanelRows; ++i) odd[i] = of_odd[i] * (odd[i] - of_odd[kPanelRows + i]);
        store_pair<Pairs>(even, odd, out);
    }
}

template <class Codes, bool Pairs = false>
constexpr CodeKernels decoding() {
    return {decode_values<Codes, Pairs>, decode_weights<Codes, Pairs>, nullptr};
}

constexpr CodebookKernelTable make_codebook_kernels() {
    return {false, nullptr, decoding<CodesF8>(), decoding<CodesU8>(), decoding<CodesTable4>()};
}

}  // namespace
}  // namespace octavo
