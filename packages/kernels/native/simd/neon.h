#pragma once
// Dot products are asked for here as well as by the build's flags: a plain ARMv8.2 target lacks them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("arch=armv8.2-a+fp16+dotprod")
#endif

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#define SIMD_INLINE inline __attribute__((always_inline))
#define SIMD_UNROLL _Pragma("GCC unroll 16")

// NEON with ARMv8.2's dot products: four lanes. The operations are documented in avx512.h.
namespace octavo {
namespace {

struct Vec {
    static constexpr int width = 4;
    float32x4_t lanes;
};

using Lanes = uint32_t;

SIMD_INLINE uint32x4_t lane_mask(Lanes bits) {
    const uint32x4_t lane_bit = {1, 2, 4, 8};
    return vtstq_u32(vdupq_n_u32(bits), lane_bit);
}
SIMD_INLINE Lanes bits_of(uint32x4_t mask) {
    const uint32x4_t lane_bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, lane_bit));
}

SIMD_INLINE Vec zero() { return {vdupq_n_f32(0.0f)}; }
SIMD_INLINE Vec splat(float x) { return {vdupq_n_f32(x)}; }
SIMD_INLINE Vec load(const float* p) { return {vld1q_f32(p)}; }
SIMD_INLINE Vec load_some(const float* p, int count) {
    float lanes[4] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return load(lanes);
}
SIMD_INLINE void store(float* p, Vec a) { vst1q_f32(p, a.lanes); }
SIMD_INLINE void store_some(float* p, Vec a, int count) {
    float lanes[4];
    store(lanes, a);
    for (int i = 0; i < count; i++) p[i] = lanes[i];
}

SIMD_INLINE Vec operator+(Vec a, Vec b) { return {vaddq_f32(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator-(Vec a, Vec b) { return {vsubq_f32(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator*(Vec a, Vec b) { return {vmulq_f32(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator/(Vec a, Vec b) { return {vdivq_f32(a.lanes, b.lanes)}; }
SIMD_INLINE Vec multiply_add(Vec a, Vec b, Vec c) { return {vfmaq_f32(c.lanes, a.lanes, b.lanes)}; }
SIMD_INLINE Vec maximum(Vec a, Vec b) { return {vbslq_f32(vcgtq_f32(a.lanes, b.lanes), a.lanes, b.lanes)}; }
SIMD_INLINE Vec minimum(Vec a, Vec b) { return {vbslq_f32(vcltq_f32(a.lanes, b.lanes), a.lanes, b.lanes)}; }

SIMD_INLINE Lanes greater(Vec a, Vec b) { return bits_of(vcgtq_f32(a.lanes, b.lanes)); }
SIMD_INLINE Lanes at_least(Vec a, Vec b) { return bits_of(vcgeq_f32(a.lanes, b.lanes)); }
SIMD_INLINE Lanes equal(Vec a, Vec b) { return bits_of(vceqq_f32(a.lanes, b.lanes)); }
SIMD_INLINE Lanes is_nan(Vec a) { return ~bits_of(vceqq_f32(a.lanes, a.lanes)) & 0xfu; }
SIMD_INLINE Vec select(Lanes mask, Vec yes, Vec no) { return {vbslq_f32(lane_mask(mask), yes.lanes, no.lanes)}; }

SIMD_INLINE float sum(Vec a) { return vaddvq_f32(a.lanes); }
SIMD_INLINE float largest(Vec a) { return vmaxvq_f32(a.lanes); }

SIMD_INLINE Vec round_to_even(Vec a) { return {vrndnq_f32(a.lanes)}; }
SIMD_INLINE Vec scale_by_power(Vec a, Vec n) {
    const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(n.lanes), vdupq_n_s32(127));
    return {vmulq_f32(a.lanes, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)))};
}

SIMD_INLINE Vec from_f16(uint16x4_t bits) { return {vcvt_f32_f16(vreinterpret_f16_u16(bits))}; }
SIMD_INLINE Vec from_bf16(uint16x4_t bits) { return {vreinterpretq_f32_u32(vshll_n_u16(bits, 16))}; }
SIMD_INLINE uint16x4_t load_some_bits(const uint16_t* p, int count) {
    uint16_t lanes[4] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return vld1_u16(lanes);
}
SIMD_INLINE uint16x4_t load_bits(const uint16_t* p) { return vld1_u16(p); }
SIMD_INLINE void store_f16(uint16_t* p, Vec a) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a.lanes))); }
SIMD_INLINE void store_bf16(uint16_t* p, Vec a) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a.lanes);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    vst1_u16(p, vshrn_n_u32(vbslq_u32(lane_mask(is_nan(a)), quiet, rounded), 16));
}

SIMD_INLINE void deinterleave(Vec& a, Vec& b) {
    const float32x4_t first = vuzp1q_f32(a.lanes, b.lanes);
    b.lanes = vuzp2q_f32(a.lanes, b.lanes);
    a.lanes = first;
}
SIMD_INLINE void interleave(Vec& a, Vec& b) {
    const float32x4_t first = vzip1q_f32(a.lanes, b.lanes);
    b.lanes = vzip2q_f32(a.lanes, b.lanes);
    a.lanes = first;
}

struct IntVec {
    int32x4_t lanes;
};

SIMD_INLINE IntVec splat_int(int32_t x) { return {vdupq_n_s32(x)}; }
SIMD_INLINE IntVec load_ints(const uint8_t* p) { return {vreinterpretq_s32_u8(vld1q_u8(p))}; }
/// Four bytes, twice.
SIMD_INLINE uint8x8_t load_four(const void* p) {
    uint32_t four;
    std::memcpy(&four, p, sizeof four);
    return vreinterpret_u8_u32(vdup_n_u32(four));
}
SIMD_INLINE IntVec widen_u8(const uint8_t* p) {
    return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_four(p)))))};
}
SIMD_INLINE IntVec widen_i8(const int8_t* p) {
    return {vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load_four(p)))))};
}
SIMD_INLINE IntVec operator+(IntVec a, IntVec b) { return {vaddq_s32(a.lanes, b.lanes)}; }
SIMD_INLINE IntVec operator&(IntVec a, IntVec b) { return {vandq_s32(a.lanes, b.lanes)}; }
template <int Count>
SIMD_INLINE IntVec shift_left(IntVec a) {
    return {vshlq_n_s32(a.lanes, Count)};
}
template <int Count>
SIMD_INLINE IntVec shift_right(IntVec a) {
    return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.lanes), Count))};
}
SIMD_INLINE IntVec maximum(IntVec a, IntVec b) { return {vmaxq_s32(a.lanes, b.lanes)}; }
SIMD_INLINE int32_t sum(IntVec a) { return vaddvq_s32(a.lanes); }
SIMD_INLINE int32_t largest(IntVec a) { return vmaxvq_s32(a.lanes); }
SIMD_INLINE Vec to_floats(IntVec a) { return {vcvtq_f32_s32(a.lanes)}; }
SIMD_INLINE IntVec to_ints(Vec a) { return {vcvtnq_s32_f32(a.lanes)}; }
SIMD_INLINE Vec as_floats(IntVec a) { return {vreinterpretq_f32_s32(a.lanes)}; }
SIMD_INLINE IntVec as_ints(Vec a) { return {vreinterpretq_s32_f32(a.lanes)}; }
SIMD_INLINE void store_i8(int8_t* p, IntVec a) {
    const int16x4_t halves = vqmovn_s32(a.lanes);
    const int32x2_t bytes = vreinterpret_s32_s8(vqmovn_s16(vcombine_s16(halves, halves)));
    const int32_t four = vget_lane_s32(bytes, 0);
    std::memcpy(p, &four, sizeof four);
}

struct FloatTable {
    const float* entries;
    explicit FloatTable(const float* table) : entries(table) {}
    SIMD_INLINE Vec look_up(IntVec index) const {
        int32_t at[4];
        vst1q_s32(at, vandq_s32(index.lanes, vdupq_n_s32(15)));
        const float32x4_t found = {entries[at[0]], entries[at[1]], entries[at[2]], entries[at[3]]};
        return {found};
    }
};

struct ByteVec {
    uint8x16_t lanes;
};

SIMD_INLINE ByteVec load_bytes(const uint8_t* p) { return {vld1q_u8(p)}; }
SIMD_INLINE void store_bytes(uint8_t* p, ByteVec a) { vst1q_u8(p, a.lanes); }
SIMD_INLINE ByteVec splat_byte(int x) { return {vdupq_n_u8(static_cast<uint8_t>(x))}; }
SIMD_INLINE ByteVec operator|(ByteVec a, ByteVec b) { return {vorrq_u8(a.lanes, b.lanes)}; }
SIMD_INLINE ByteVec operator&(ByteVec a, ByteVec b) { return {vandq_u8(a.lanes, b.lanes)}; }
SIMD_INLINE ByteVec operator^(ByteVec a, ByteVec b) { return {veorq_u8(a.lanes, b.lanes)}; }
template <int Count>
SIMD_INLINE ByteVec shift_bytes(ByteVec a) {
    if constexpr (Count > 0) return {vshlq_n_u8(a.lanes, Count)};
    if constexpr (Count < 0) return {vshrq_n_u8(a.lanes, -Count)};
    return a;
}
SIMD_INLINE ByteVec pinned(ByteVec a) { return a; }
SIMD_INLINE ByteVec load_table(const uint8_t* p) { return load_bytes(p); }
SIMD_INLINE ByteVec look_up(ByteVec table, ByteVec codes) { return {vqtbl1q_u8(table.lanes, codes.lanes)}; }

SIMD_INLINE ByteVec load_quad(const int8_t* p) { return {vcombine_u8(load_four(p), load_four(p))}; }
/// SDOT multiplies signed by signed: codes up to 6 bits are positive either way, 8-bit codes are dotted as u - 128.
constexpr bool kCentredBytes = true;
template <int Bits>
constexpr int kRun = 0;
template <int Bits>
SIMD_INLINE IntVec dot(IntVec sum, ByteVec w, ByteVec quad) {
    return {vdotq_s32(sum.lanes, vreinterpretq_s8_u8(w.lanes), vreinterpretq_s8_u8(quad.lanes))};
}
SIMD_INLINE IntVec widen(IntVec sum, IntVec) { return sum; }

}  // namespace
}  // namespace octavo

#include "sixteen.h"
