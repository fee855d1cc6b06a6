#pragma once
// GCC 12 takes the deliberately undefined operands inside its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstdint>

// Sixteen f32 lanes. Everything sits in an anonymous namespace: each instruction-set file has its own copy, so that
// the linker can never hand a baseline caller code built for newer instructions.
namespace {

struct Vec {
    static constexpr int width = 16;
    __m512 lanes;
};

using Lanes = uint32_t;

inline __mmask16 lane_mask(int count) { return static_cast<__mmask16>((1u << count) - 1u); }

inline Vec zero() { return {_mm512_setzero_ps()}; }
inline Vec splat(float x) { return {_mm512_set1_ps(x)}; }
inline Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline Vec load_some(const float* p, int count) { return {_mm512_maskz_loadu_ps(lane_mask(count), p)}; }
inline void store(float* p, Vec a) { _mm512_storeu_ps(p, a.lanes); }
inline void store_some(float* p, Vec a, int count) { _mm512_mask_storeu_ps(p, lane_mask(count), a.lanes); }

inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.lanes, b.lanes)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.lanes, b.lanes)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.lanes, b.lanes)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.lanes, b.lanes)}; }
inline Vec multiply_add(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)}; }
/// Both return b where either is NaN.
inline Vec maximum(Vec a, Vec b) { return {_mm512_max_ps(a.lanes, b.lanes)}; }
inline Vec minimum(Vec a, Vec b) { return {_mm512_min_ps(a.lanes, b.lanes)}; }

inline Lanes greater(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_GT_OQ); }
inline Lanes at_least(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_GE_OQ); }
inline Lanes equal(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_EQ_OQ); }
inline Lanes is_nan(Vec a) { return _mm512_cmp_ps_mask(a.lanes, a.lanes, _CMP_UNORD_Q); }
inline Vec select(Lanes mask, Vec yes, Vec no) {
    return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), no.lanes, yes.lanes)};
}

inline float sum(Vec a) { return _mm512_reduce_add_ps(a.lanes); }
inline float largest(Vec a) { return _mm512_reduce_max_ps(a.lanes); }

inline Vec round_to_even(Vec a) {
    return {_mm512_roundscale_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// a * 2^n for an integral n in [-126, 127].
inline Vec scale_by_power(Vec a, Vec n) { return {_mm512_scalef_ps(a.lanes, n.lanes)}; }

inline Vec from_f16(__m256i bits) { return {_mm512_cvtph_ps(bits)}; }
inline Vec from_bf16(__m256i bits) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
inline __m256i load_bits(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline Vec load_f16(const uint16_t* p) { return from_f16(load_bits(p)); }
inline Vec load_bf16(const uint16_t* p) { return from_bf16(load_bits(p)); }
inline Vec load_some_f16(const uint16_t* p, int count) {
    return from_f16(_mm256_maskz_loadu_epi16(lane_mask(count), p));
}
inline Vec load_some_bf16(const uint16_t* p, int count) {
    return from_bf16(_mm256_maskz_loadu_epi16(lane_mask(count), p));
}

}  // namespace
