#pragma once
#include <cmath>
#include <cstdint>

#include "../core/half.h"
#include "../core/float_to_f16.h"

// Four lanes in plain C++: the reference for the other instruction sets, and what runs where there is none.
// The operations are documented in simd_avx512.h.
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
        return a.lanes[i] * octavo::float_from_bits(static_cast<uint32_t>(static_cast<int32_t>(n.lanes[i]) + 127) << 23);
    });
}

inline Vec load_some_f16(const uint16_t* p, int count) {
    return each_lane([=](int i) { return i < count ? octavo::f16_to_f32(p[i]) : 0.0f; });
}
inline Vec load_some_bf16(const uint16_t* p, int count) {
    return each_lane([=](int i) { return i < count ? octavo::bf16_to_f32(p[i]) : 0.0f; });
}
inline Vec load_f16(const uint16_t* p) { return load_some_f16(p, Vec::width); }
inline Vec load_bf16(const uint16_t* p) { return load_some_bf16(p, Vec::width); }


inline Vec load_some_i8(const int8_t* p, int count) {
    return each_lane([=](int i) { return i < count ? static_cast<float>(p[i]) : 0.0f; });
}
inline Vec load_i8(const int8_t* p) { return load_some_i8(p, Vec::width); }
inline void store_i8(int8_t* p, Vec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = static_cast<int8_t>(a.lanes[i]);
}
inline void store_f16(uint16_t* p, Vec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = octavo::f32_to_f16(a.lanes[i]);
}
inline void store_bf16(uint16_t* p, Vec a) {
    for (int i = 0; i < Vec::width; i++) p[i] = octavo::f32_to_bf16(a.lanes[i]);
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

}  // namespace
