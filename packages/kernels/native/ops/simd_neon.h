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

}  // namespace
