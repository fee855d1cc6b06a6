#pragma once
#include <arm_neon.h>

#include <cstdint>

// Four f32 lanes; the operations are documented in simd_avx512.h.
namespace {

struct Vec {
    static constexpr int width = 4;
    float32x4_t lanes;
};

using Lanes = uint32_t;

inline uint32x4_t lane_mask(Lanes bits) {
    const uint32x4_t lane_bit = {1, 2, 4, 8};
    return vtstq_u32(vdupq_n_u32(bits), lane_bit);
}
inline Lanes bits_of(uint32x4_t mask) {
    const uint32x4_t lane_bit = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, lane_bit));
}

inline Vec zero() { return {vdupq_n_f32(0.0f)}; }
inline Vec splat(float x) { return {vdupq_n_f32(x)}; }
inline Vec load(const float* p) { return {vld1q_f32(p)}; }
inline Vec load_some(const float* p, int count) {
    float lanes[4] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return load(lanes);
}
inline void store(float* p, Vec a) { vst1q_f32(p, a.lanes); }
inline void store_some(float* p, Vec a, int count) {
    float lanes[4];
    store(lanes, a);
    for (int i = 0; i < count; i++) p[i] = lanes[i];
}

inline Vec operator+(Vec a, Vec b) { return {vaddq_f32(a.lanes, b.lanes)}; }
inline Vec operator-(Vec a, Vec b) { return {vsubq_f32(a.lanes, b.lanes)}; }
inline Vec operator*(Vec a, Vec b) { return {vmulq_f32(a.lanes, b.lanes)}; }
inline Vec operator/(Vec a, Vec b) { return {vdivq_f32(a.lanes, b.lanes)}; }
inline Vec multiply_add(Vec a, Vec b, Vec c) { return {vfmaq_f32(c.lanes, a.lanes, b.lanes)}; }
inline Vec maximum(Vec a, Vec b) { return {vbslq_f32(vcgtq_f32(a.lanes, b.lanes), a.lanes, b.lanes)}; }
inline Vec minimum(Vec a, Vec b) { return {vbslq_f32(vcltq_f32(a.lanes, b.lanes), a.lanes, b.lanes)}; }

inline Lanes greater(Vec a, Vec b) { return bits_of(vcgtq_f32(a.lanes, b.lanes)); }
inline Lanes at_least(Vec a, Vec b) { return bits_of(vcgeq_f32(a.lanes, b.lanes)); }
inline Lanes equal(Vec a, Vec b) { return bits_of(vceqq_f32(a.lanes, b.lanes)); }
inline Lanes is_nan(Vec a) { return ~bits_of(vceqq_f32(a.lanes, a.lanes)) & 0xfu; }
inline Vec select(Lanes mask, Vec yes, Vec no) { return {vbslq_f32(lane_mask(mask), yes.lanes, no.lanes)}; }

inline float sum(Vec a) { return vaddvq_f32(a.lanes); }
inline float largest(Vec a) { return vmaxvq_f32(a.lanes); }

inline Vec round_to_even(Vec a) { return {vrndnq_f32(a.lanes)}; }
inline Vec scale_by_power(Vec a, Vec n) {
    const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(n.lanes), vdupq_n_s32(127));
    return {vmulq_f32(a.lanes, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)))};
}

inline Vec from_f16(uint16x4_t bits) { return {vcvt_f32_f16(vreinterpret_f16_u16(bits))}; }
inline Vec from_bf16(uint16x4_t bits) { return {vreinterpretq_f32_u32(vshll_n_u16(bits, 16))}; }
inline uint16x4_t load_some_bits(const uint16_t* p, int count) {
    uint16_t lanes[4] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return vld1_u16(lanes);
}
inline Vec load_f16(const uint16_t* p) { return from_f16(vld1_u16(p)); }
inline Vec load_bf16(const uint16_t* p) { return from_bf16(vld1_u16(p)); }
inline Vec load_some_f16(const uint16_t* p, int count) { return from_f16(load_some_bits(p, count)); }
inline Vec load_some_bf16(const uint16_t* p, int count) { return from_bf16(load_some_bits(p, count)); }


inline Vec from_i8(int8x8_t bytes) { return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))}; }
inline Vec load_some_i8(const int8_t* p, int count) {
    int8_t lanes[8] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return from_i8(vld1_s8(lanes));
}
inline Vec load_i8(const int8_t* p) { return load_some_i8(p, 4); }
inline void store_i8(int8_t* p, Vec a) {
    const int16x4_t halves = vqmovn_s32(vcvtnq_s32_f32(a.lanes));
    int8_t lanes[8];
    vst1_s8(lanes, vqmovn_s16(vcombine_s16(halves, halves)));
    for (int i = 0; i < 4; i++) p[i] = lanes[i];
}
inline void store_f16(uint16_t* p, Vec a) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a.lanes))); }
inline void store_bf16(uint16_t* p, Vec a) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a.lanes);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    vst1_u16(p, vshrn_n_u32(vbslq_u32(lane_mask(is_nan(a)), quiet, rounded), 16));
}

inline void deinterleave(Vec& a, Vec& b) {
    const float32x4_t first = vuzp1q_f32(a.lanes, b.lanes);
    b.lanes = vuzp2q_f32(a.lanes, b.lanes);
    a.lanes = first;
}
inline void interleave(Vec& a, Vec& b) {
    const float32x4_t first = vzip1q_f32(a.lanes, b.lanes);
    b.lanes = vzip2q_f32(a.lanes, b.lanes);
    a.lanes = first;
}

}  // namespace
