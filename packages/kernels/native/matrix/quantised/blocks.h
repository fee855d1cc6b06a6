#pragma once
#include "../panel_tiles.h"
#include "formats.h"

namespace octavo {

/// Where the f16 values stand in a block that every weight of it is multiplied by or taken from.
template <int64_t... At>
struct Halves;

template <WeightType Type>
struct BlockBytes {
    static constexpr int64_t kBytes = block_of(Type).bytes;
};

/// Blocks of GGUF's types (ggml-common.h) and of 32 columns of int2, int3, int4, int8 and uint8. Group `g` of a row holds columns
/// [32 g, 32 g + 32); its code u is what Format describes. A type gives, for a group of a row:
///   pairs(row, g): nibble i of its codes, low, with nibble i + 16, high: byte i of 16
///   low(row, g): the two lowest bits, byte i of column i, two vectors (2 and 3 bits)
///   high(row, g): the bits above those or above the nibbles, likewise (3, 5 and 6 bits)
///   bytes(row, g, half): codes of sixteen columns, whole (8 bits)
/// and, where it has them, `Scales` and scales(block): the integer scales and minima of a super-block.
template <WeightType>
struct Blocks;

struct ColumnBits {
    Bytes16 low;   // columns 0 to 15
    Bytes16 high;  // columns 16 to 31
};

static inline Bytes16 join_nibbles(Bytes16 low, Bytes16 high) { return low | raised(high, 4, 0xf0); }

/// One byte, 0 or 1, for each of sixteen bits.
static inline Bytes16 spread_bits(uint32_t bits) {
    constexpr uint64_t kEvery = 0x0101010101010101;
    const Longs2 copies = {(bits & 0xff) * kEvery, (bits >> 8 & 0xff) * kEvery};
    const Bytes16 selected = reinterpret_cast<Bytes16>(copies & (Longs2{} + 0x8040201008040201));
    return reinterpret_cast<Bytes16>(selected != 0) & bytes_of(1);
}

/// f16 d, 16 x nibble pairs (i, i + 16)
template <>
struct Blocks<WeightType::q4_0> : BlockBytes<WeightType::q4_0> {
    using Scales = Halves<0>;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) { return load_as<Bytes16>(row + g * kBytes + 2); }
};

template <>
struct Blocks<WeightType::iq4_nl> : Blocks<WeightType::q4_0> {};

/// f16 d, f16 m, 16 x nibble pairs
template <>
struct Blocks<WeightType::q4_1> : BlockBytes<WeightType::q4_1> {
    using Scales = Halves<0, 2>;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) { return load_as<Bytes16>(row + g * kBytes + 4); }
};

/// Spreads 32 bits over two vectors.
static inline ColumnBits spread_word(const uint8_t* from) {
    uint32_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return {spread_bits(bits & 0xffff), spread_bits(bits >> 16)};
}

/// f16 d, f16 m, u32 fifth bits, 16 x nibble pairs
template <>
struct Blocks<WeightType::q5_1> : BlockBytes<WeightType::q5_1> {
    using Scales = Halves<0, 2>;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) { return load_as<Bytes16>(row + g * kBytes + 8); }
    static inline ColumnBits high(const uint8_t* row, int64_t g) { return spread_word(row + g * kBytes + 4); }
};

/// f16 d, u32 fifth bits, 16 x nibble pairs
template <>
struct Blocks<WeightType::q5_0> : BlockBytes<WeightType::q5_0> {
    using Scales = Halves<0>;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) { return load_as<Bytes16>(row + g * kBytes + 6); }
    static inline ColumnBits high(const uint8_t* row, int64_t g) { return spread_word(row + g * kBytes + 2); }
};

/// f16 d, 32 x i8
template <>
struct Blocks<WeightType::q8_0> : BlockBytes<WeightType::q8_0> {
    using Scales = Halves<0>;
    static inline Bytes16 bytes(const uint8_t* row, int64_t g, int half) {
        return load_as<Bytes16>(row + g * kBytes + 2 + 16 * half) ^ bytes_of(0x80);
    }
};

/// Nibbles of a group of a Q4_K or Q5_K super-block: pairs (i, i + 32) of 64 columns, two groups to 32 bytes.
static inline Bytes16 super_pairs(const uint8_t* nibbles, int group) {
    const uint8_t* from = nibbles + group / 2 * 32;
    const int shift = 4 * (group % 2);
    return join_nibbles(field(load_as<Bytes16>(from), shift, 0x0f), field(load_as<Bytes16>(from + 16), shift, 0x0f));
}

/// The twelve bytes of six-bit scales and minima of a Q4_K or Q5_K super-block as eight scales, then eight minima.
static inline Bytes16 super_scales(const uint8_t packed[12]) {
    uint32_t word[3];
    std::memcpy(word, packed, sizeof word);
    return reinterpret_cast<Bytes16>(Words4{word[0] & 0x3f3f3f3f, (word[2] & 0x0f0f0f0f) | (word[0] >> 2 & 0x30303030),
                                            word[1] & 0x3f3f3f3f, (word[2] >> 4 & 0x0f0f0f0f) | (word[1] >> 2 & 0x30303030)});
}

/// f16 d, f16 dmin, 12 scale bytes, 128 x nibble pairs
template <>
struct Blocks<WeightType::q4_k> : BlockBytes<WeightType::q4_k> {
    using Scales = Halves<0, 2>;
    static inline Bytes16 scales(const uint8_t* block) { return super_scales(block + 4); }
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) {
        return super_pairs(row + g / kSuperGroups * kBytes + 16, static_cast<int>(g % kSuperGroups));
    }
};

/// f16 d, f16 dmin, 12 scale bytes, 32 fifth-bit bytes (bit g for group g), 128 x nibble pairs
template <>
struct Blocks<WeightType::q5_k> : BlockBytes<WeightType::q5_k> {
    using Scales = Halves<0, 2>;
    static inline Bytes16 scales(const uint8_t* block) { return super_scales(block + 4); }
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) {
        return super_pairs(row + g / kSuperGroups * kBytes + 48, static_cast<int>(g % kSuperGroups));
    }
    static inline ColumnBits high(const uint8_t* row, int64_t g) {
        const uint8_t* from = row + g / kSuperGroups * kBytes + 16;
        const int shift = static_cast<int>(g % kSuperGroups);
        return {field(load_as<Bytes16>(from), shift, 1), field(load_as<Bytes16>(from + 16), shift, 1)};
    }
};

/// 128 low nibble pairs, 64 x high bits, 16 x i8 scales, f16 d. Each half of 128 columns has 64 bytes of nibbles and 32 bytes of
/// high bits; its groups 0 and 1 are the low nibbles, 2 and 3 the high ones.
template <>
struct Blocks<WeightType::q6_k> : BlockBytes<WeightType::q6_k> {
    using Scales = Halves<kBytes - 2>;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) {
        const int group = static_cast<int>(g % kSuperGroups);
        const uint8_t* from = row + g / kSuperGroups * kBytes + group / 4 * 64 + group % 2 * 32;
        const int shift = group % 4 < 2 ? 0 : 4;
        return join_nibbles(field(load_as<Bytes16>(from), shift, 0x0f), field(load_as<Bytes16>(from + 16), shift, 0x0f));
    }
    static inline ColumnBits high(const uint8_t* row, int64_t g) {
        const int group = static_cast<int>(g % kSuperGroups);
        const uint8_t* from = row + g / kSuperGroups * kBytes + 128 + group / 4 * 32;
        const int shift = 2 * (group % 4);
        return {field(load_as<Bytes16>(from), shift, 3), field(load_as<Bytes16>(from + 16), shift, 3)};
    }
    static inline Bytes16 scales(const uint8_t* block) { return load_as<Bytes16>(block + 192); }
};

/// The bit pairs of a group of a Q2_K or Q3_K super-block: those of 128 columns lie in 32 bytes, four groups beside each other.
static inline ColumnBits super_bit_pairs(const uint8_t* pairs, int group) {
    const uint8_t* from = pairs + group / 4 * 32;
    const int shift = 2 * (group % 4);
    return {field(load_as<Bytes16>(from), shift, 3), field(load_as<Bytes16>(from + 16), shift, 3)};
}

/// 16 x (scale, minimum) nibble pairs, 64 x bit pairs, f16 d, f16 dmin
template <>
struct Blocks<WeightType::q2_k> : BlockBytes<WeightType::q2_k> {
    using Scales = Halves<80, 82>;
    static inline ColumnBits low(const uint8_t* row, int64_t g) {
        return super_bit_pairs(row + g / kSuperGroups * kBytes + 16, static_cast<int>(g % kSuperGroups));
    }
    static inline Bytes16 scales(const uint8_t* block) { return load_as<Bytes16>(block); }
};

/// 32 third-bit bytes (bit g for group g), 64 x bit pairs, 12 scale bytes, f16 d
template <>
struct Blocks<WeightType::q3_k> : BlockBytes<WeightType::q3_k> {
    using Scales = Halves<kBytes - 2>;
    static inline ColumnBits low(const uint8_t* row, int64_t g) {
        return super_bit_pairs(row + g / kSuperGroups * kBytes + 32, static_cast<int>(g % kSuperGroups));
    }
    static inline ColumnBits high(const uint8_t* row, int64_t g) {
        const uint8_t* from = row + g / kSuperGroups * kBytes;
        const int shift = static_cast<int>(g % kSuperGroups);
        return {field(load_as<Bytes16>(from), shift, 1), field(load_as<Bytes16>(from + 16), shift, 1)};
    }
    /// Nibbles of scales 0 to 7, low, and 8 to 15, high; then four bytes whose bit pairs j stand above those of scales 4j to 4j + 3.
    static inline Bytes16 scales(const uint8_t* block) {
        const uint8_t* from = block + 96;
        Bytes16 out;
        for (int i = 0; i < 16; ++i) {
            const int low = from[i % 8] >> (i < 8 ? 0 : 4) & 15;
            const int high = from[8 + i % 4] >> (2 * (i / 4)) & 3;
            out[i] = static_cast<uint8_t>((low | high << 4) - 32);
        }
        return out;
    }
};

/// f16 d, u16 with the high bit pairs of eight scales, 4 x nibble pairs of their low bits, 128 x nibble pairs
template <>
struct Blocks<WeightType::iq4_xs> : BlockBytes<WeightType::iq4_xs> {
    using Scales = Halves<0>;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) {
        return load_as<Bytes16>(row + g / kSuperGroups * kBytes + 8 + g % kSuperGroups * 16);
    }
    static inline Bytes16 scales(const uint8_t* block) {
        uint16_t high;
        std::memcpy(&high, block + 2, sizeof high);
        Bytes16 out{};
        for (int i = 0; i < kSuperGroups; ++i) {
            const int low = block[4 + i / 2] >> (i % 2 * 4) & 15;
            out[i] = static_cast<uint8_t>((low | (high >> (2 * i) & 3) << 4) - 32);
        }
        return out;
    }
};

/// u8 exponent, 16 x nibble pairs (OCP Microscaling Formats, version 1.0)
template <>
struct Blocks<WeightType::mxfp4> : BlockBytes<WeightType::mxfp4> {
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) { return load_as<Bytes16>(row + g * kBytes + 1); }
};

/// Fields of `Bits` bits, sixteen of them from the lowest on, as bytes.
template <int Bits>
static inline Bytes16 spread_fields(const uint8_t* from) {
    uint64_t fields = 0;
    std::memcpy(&fields, from, 2 * Bits);
    Bytes16 out;
    for (int i = 0; i < 16; ++i) out[i] = static_cast<uint8_t>(fields >> (Bits * i) & ((1u << Bits) - 1));
    return out;
}

template <>
struct Blocks<WeightType::int2> : BlockBytes<WeightType::int2> {
    static constexpr float kDefaultZero = 0.0f;
    static inline ColumnBits low(const uint8_t* row, int64_t g) {
        const uint8_t* from = row + g * kBytes;
        return {spread_fields<2>(from), spread_fields<2>(from + 4)};
    }
};

template <>
struct Blocks<WeightType::int3> : BlockBytes<WeightType::int3> {
    static constexpr float kDefaultZero = 0.0f;
    static inline ColumnBits low(const uint8_t* row, int64_t g) {
        const ColumnBits codes = whole(row, g);
        return {field(codes.low, 0, 3), field(codes.high, 0, 3)};
    }
    static inline ColumnBits high(const uint8_t* row, int64_t g) {
        const ColumnBits codes = whole(row, g);
        return {field(codes.low, 2, 1), field(codes.high, 2, 1)};
    }

private:
    static inline ColumnBits whole(const uint8_t* row, int64_t g) {
        const uint8_t* from = row + g * kBytes;
        return {spread_fields<3>(from), spread_fields<3>(from + 6)};
    }
};

template <>
struct Blocks<WeightType::uint8> {
    static constexpr int64_t kBytes = kGroup;
    static constexpr float kDefaultZero = 0.0f;
    static inline Bytes16 bytes(const uint8_t* row, int64_t g, int half) { return load_as<Bytes16>(row + g * kBytes + 16 * half); }
};

template <>
struct Blocks<WeightType::int8> : BlockBytes<WeightType::int8> {
    static inline Bytes16 bytes(const uint8_t* row, int64_t g, int half) {
        return load_as<Bytes16>(row + g * kBytes + 16 * half) ^ bytes_of(0x80);
    }
};

/// Nibble pairs (2i, 2i + 1).
template <>
struct Blocks<WeightType::int4> : BlockBytes<WeightType::int4> {
    static constexpr float kDefaultZero = 8.0f;
    static inline Bytes16 pairs(const uint8_t* row, int64_t g) {
        const Bytes16 even_odd = load_as<Bytes16>(row + g * kBytes);
        const Bytes16 even = field(even_odd, 0, 0x0f);
        const Bytes16 odd = field(even_odd, 4, 0x0f);
        return join_nibbles(interleave_low(even, odd), interleave_high(even, odd));
    }
};

}  // namespace octavo
