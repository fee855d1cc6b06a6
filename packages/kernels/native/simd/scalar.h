#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../core/half.h"
#include "../core/float_to_f16.h"

// Four lanes in plain C++: the reference for the other instruction sets, and what runs where there is none.
// The operations are documented in avx512.h.
#define SIMD_INLINE inline __attribute__((always_inline))
// Unrolling pays where a vector is a register; here it only multiplies code.
#define SIMD_UNROLL _Pragma("GCC unroll 1")

namespace octavo {
namespace {

struct Vec {
    static constexpr int width = 4;
    float lanes[width];
};

using Lanes = uint32_t;

template <typename F>
inline Vec each_lane(F&& f) {
    Vec out;
    for (int i = 0; i < Vec::width; i++) out.lanes[i] = f(i);
    return out;
}

template <typename F>
inline Lanes lanes_where(F&& f) {
    Lanes out = 0;
    for (int i = 0; i < Vec::width; i++) out |= static_cast<Lanes>(f(i) ? 1u : 0u) << i;
    return out;
}

inline Vec splat(float x) { return each_lane([=](int) { return x; }); }
inline Vec zero() { return splat(0.0f); }
inline Vec load(const float* p) { return each_lane([=](int i) { return p[i]; }); }
inline Vec load_some(const float* p, int count) {
    return each_lane([=](int i) { return i < count ? p[i] : 0.0f; });
}
inline void store(float* p, Vec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = a.lanes[i];
}
inline void store_some(float* p, Vec a, int count) {
    for (int i = 0; i < count; i++) p[i] = a.lanes[i];
}

inline Vec operator+(Vec a, Vec b) { return each_lane([&](int i) { return a.lanes[i] + b.lanes[i]; }); }
inline Vec operator-(Vec a, Vec b) { return each_lane([&](int i) { return a.lanes[i] - b.lanes[i]; }); }
inline Vec operator*(Vec a, Vec b) { return each_lane([&](int i) { return a.lanes[i] * b.lanes[i]; }); }
inline Vec operator/(Vec a, Vec b) { return each_lane([&](int i) { return a.lanes[i] / b.lanes[i]; }); }
/// Rounded twice: a fused one would be a library call on machines without the instruction.
inline Vec multiply_add(Vec a, Vec b, Vec c) {
    return each_lane([&](int i) { return a.lanes[i] * b.lanes[i] + c.lanes[i]; });
}
inline Vec maximum(Vec a, Vec b) {
    return each_lane([&](int i) { return a.lanes[i] > b.lanes[i] ? a.lanes[i] : b.lanes[i]; });
}
inline Vec minimum(Vec a, Vec b) {
    return each_lane([&](int i) { return a.lanes[i] < b.lanes[i] ? a.lanes[i] : b.lanes[i]; });
}

inline Lanes greater(Vec a, Vec b) { return lanes_where([&](int i) { return a.lanes[i] > b.lanes[i]; }); }
inline Lanes at_least(Vec a, Vec b) { return lanes_where([&](int i) { return a.lanes[i] >= b.lanes[i]; }); }
inline Lanes equal(Vec a, Vec b) { return lanes_where([&](int i) { return a.lanes[i] == b.lanes[i]; }); }
inline Lanes is_nan(Vec a) { return lanes_where([&](int i) { return a.lanes[i] != a.lanes[i]; }); }
inline Vec select(Lanes mask, Vec yes, Vec no) {
    return each_lane([&](int i) { return ((mask >> i) & 1u) != 0 ? yes.lanes[i] : no.lanes[i]; });
}

inline float sum(Vec a) { return (a.lanes[0] + a.lanes[2]) + (a.lanes[1] + a.lanes[3]); }
inline float largest(Vec a) {
    float out = a.lanes[0];
    for (int i = 1; i < Vec::width; i++) out = out > a.lanes[i] ? out : a.lanes[i];
    return out;
}

/// For |a| < 2^22, which is all that exp asks.
inline Vec round_to_even(Vec a) {
    const float magic = 0x1.8p23f;
    return each_lane([&](int i) { return (a.lanes[i] + magic) - magic; });
}
inline Vec scale_by_power(Vec a, Vec n) {
    return each_lane([&](int i) {
        if (n.lanes[i] != n.lanes[i]) return n.lanes[i];
        return a.lanes[i] * float_from_bits(static_cast<uint32_t>(static_cast<int32_t>(n.lanes[i]) + 127) << 23);
    });
}

/// Four f16 or bf16.
struct HalfBits {
    uint16_t lanes[Vec::width];
};
inline HalfBits load_some_bits(const uint16_t* p, int count) {
    HalfBits bits{};
    for (int i = 0; i < count; i++) bits.lanes[i] = p[i];
    return bits;
}
inline HalfBits load_bits(const uint16_t* p) { return load_some_bits(p, Vec::width); }
inline Vec from_f16(HalfBits bits) {
    return each_lane([&](int i) { return f16_to_f32(bits.lanes[i]); });
}
inline Vec from_bf16(HalfBits bits) {
    return each_lane([&](int i) { return bf16_to_f32(bits.lanes[i]); });
}
inline void store_f16(uint16_t* p, Vec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = f32_to_f16(a.lanes[i]);
}
inline void store_bf16(uint16_t* p, Vec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = f32_to_bf16(a.lanes[i]);
}

inline void deinterleave(Vec& a, Vec& b) {
    const Vec first = a;
    const Vec second = b;
    a = {{first.lanes[0], first.lanes[2], second.lanes[0], second.lanes[2]}};
    b = {{first.lanes[1], first.lanes[3], second.lanes[1], second.lanes[3]}};
}
inline void interleave(Vec& a, Vec& b) {
    const Vec first = a;
    const Vec second = b;
    a = {{first.lanes[0], second.lanes[0], first.lanes[1], second.lanes[1]}};
    b = {{first.lanes[2], second.lanes[2], first.lanes[3], second.lanes[3]}};
}

struct IntVec {
    int32_t lanes[Vec::width];
};

template <typename F>
inline IntVec each_int(F&& f) {
    IntVec out;
    for (int i = 0; i < Vec::width; i++) out.lanes[i] = f(i);
    return out;
}

inline IntVec splat_int(int32_t x) { return each_int([=](int) { return x; }); }
inline IntVec load_ints(const uint8_t* p) {
    IntVec out;
    std::memcpy(out.lanes, p, sizeof out.lanes);
    return out;
}
inline IntVec widen_u8(const uint8_t* p) { return each_int([=](int i) { return p[i]; }); }
inline IntVec widen_i8(const int8_t* p) { return each_int([=](int i) { return p[i]; }); }
inline IntVec operator+(IntVec a, IntVec b) { return each_int([&](int i) { return a.lanes[i] + b.lanes[i]; }); }
inline IntVec operator&(IntVec a, IntVec b) { return each_int([&](int i) { return a.lanes[i] & b.lanes[i]; }); }
template <int Count>
inline IntVec shift_left(IntVec a) {
    return each_int([&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.lanes[i]) << Count); });
}
template <int Count>
inline IntVec shift_right(IntVec a) {
    return each_int([&](int i) { return static_cast<int32_t>(static_cast<uint32_t>(a.lanes[i]) >> Count); });
}
inline IntVec maximum(IntVec a, IntVec b) {
    return each_int([&](int i) { return a.lanes[i] > b.lanes[i] ? a.lanes[i] : b.lanes[i]; });
}
inline int32_t sum(IntVec a) { return a.lanes[0] + a.lanes[1] + a.lanes[2] + a.lanes[3]; }
inline int32_t largest(IntVec a) {
    int32_t out = a.lanes[0];
    for (int i = 1; i < Vec::width; i++) out = out > a.lanes[i] ? out : a.lanes[i];
    return out;
}
inline Vec to_floats(IntVec a) {
    return each_lane([&](int i) { return static_cast<float>(a.lanes[i]); });
}
inline Vec as_floats(IntVec a) {
    return each_lane([&](int i) { return float_from_bits(static_cast<uint32_t>(a.lanes[i])); });
}
inline IntVec as_ints(Vec a) {
    return each_int([&](int i) { return static_cast<int32_t>(float_bits(a.lanes[i])); });
}
/// For |a| < 2^22: adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum.
inline IntVec to_ints(Vec a) { return as_ints(a + splat(0x1.8p23f)) + splat_int(-0x4b400000); }
inline void store_i8(int8_t* p, IntVec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = static_cast<int8_t>(a.lanes[i]);
}

struct FloatTable {
    const float* entries;
    explicit FloatTable(const float* table) : entries(table) {}
    Vec look_up(IntVec index) const {
        return each_lane([&](int i) { return entries[index.lanes[i] & 15]; });
    }
};

struct ByteVec {
    uint8_t lanes[4 * Vec::width];
};

template <typename F>
inline ByteVec each_byte(F&& f) {
    ByteVec out;
    for (int i = 0; i < 4 * Vec::width; i++) out.lanes[i] = static_cast<uint8_t>(f(i));
    return out;
}

inline ByteVec load_bytes(const uint8_t* p) { return each_byte([=](int i) { return p[i]; }); }
inline void store_bytes(uint8_t* p, ByteVec a) { std::memcpy(p, a.lanes, sizeof a.lanes); }
inline ByteVec splat_byte(int x) { return each_byte([=](int) { return x; }); }
inline ByteVec operator|(ByteVec a, ByteVec b) { return each_byte([&](int i) { return a.lanes[i] | b.lanes[i]; }); }
inline ByteVec operator&(ByteVec a, ByteVec b) { return each_byte([&](int i) { return a.lanes[i] & b.lanes[i]; }); }
inline ByteVec operator^(ByteVec a, ByteVec b) { return each_byte([&](int i) { return a.lanes[i] ^ b.lanes[i]; }); }
template <int Count>
inline ByteVec shift_bytes(ByteVec a) {
    return each_byte([&](int i) { return Count >= 0 ? a.lanes[i] << (Count >= 0 ? Count : 0) : a.lanes[i] >> (Count < 0 ? -Count : 0); });
}
inline ByteVec pinned(ByteVec a) { return a; }
inline ByteVec load_table(const uint8_t* p) { return load_bytes(p); }
inline ByteVec look_up(ByteVec table, ByteVec codes) {
    return each_byte([&](int i) { return table.lanes[codes.lanes[i]]; });
}

inline ByteVec load_quad(const int8_t* p) {
    return each_byte([=](int i) { return p[i % 4]; });
}
constexpr bool kCentredBytes = false;
template <int Bits>
constexpr int kRun = 0;
template <int Bits>
inline IntVec dot(IntVec sum, ByteVec w, ByteVec quad) {
    return each_int([&](int i) {
        int32_t total = sum.lanes[i];
        for (int j = 4 * i; j < 4 * i + 4; j++) total += w.lanes[j] * static_cast<int8_t>(quad.lanes[j]);
        return total;
    });
}
inline IntVec widen(IntVec sum, IntVec) { return sum; }

}  // namespace
}  // namespace octavo

#include "sixteen.h"
