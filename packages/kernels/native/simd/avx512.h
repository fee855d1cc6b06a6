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


inline Vec load_i8(const int8_t* p) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline Vec load_some_i8(const int8_t* p, int count) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(lane_mask(count), p)))};
}
/// Integral values in [-128, 127].
inline void store_i8(int8_t* p, Vec a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.lanes)));
}
/// Rounded to nearest, ties to even; NaN stays NaN.
inline void store_f16(uint16_t* p, Vec a) {
    const __m256i bits = _mm512_cvtps_ph(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
}
inline void store_bf16(uint16_t* p, Vec a) {
    const __m512i bits = _mm512_castps_si512(a.lanes);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i kept = _mm512_mask_blend_epi32(static_cast<__mmask16>(is_nan(a)), rounded, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

/// a and b hold pairs one after another; afterwards a holds the first of each, b the second. `interleave` undoes it.
inline void deinterleave(Vec& a, Vec& b) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512 first = _mm512_permutex2var_ps(a.lanes, even, b.lanes);
    b.lanes = _mm512_permutex2var_ps(a.lanes, odd, b.lanes);
    a.lanes = first;
}
inline void interleave(Vec& a, Vec& b) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const __m512 first = _mm512_permutex2var_ps(a.lanes, low, b.lanes);
    b.lanes = _mm512_permutex2var_ps(a.lanes, high, b.lanes);
    a.lanes = first;
}

}  // namespace
