#pragma once
#include <immintrin.h>

#include <cstdint>

// Eight f32 lanes; the operations are documented in simd_avx512.h.
namespace {

struct Vec {
    static constexpr int width = 8;
    __m256 lanes;
};

using Lanes = uint32_t;

inline __m256i lane_mask(Lanes bits) {
    const __m256i lane_bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane_bit), lane_bit);
}
inline __m256i first_lanes(int count) { return lane_mask((1u << count) - 1u); }

inline Vec zero() { return {_mm256_setzero_ps()}; }
inline Vec splat(float x) { return {_mm256_set1_ps(x)}; }
inline Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline Vec load_some(const float* p, int count) { return {_mm256_maskload_ps(p, first_lanes(count))}; }
inline void store(float* p, Vec a) { _mm256_storeu_ps(p, a.lanes); }
inline void store_some(float* p, Vec a, int count) { _mm256_maskstore_ps(p, first_lanes(count), a.lanes); }

inline Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.lanes, b.lanes)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.lanes, b.lanes)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.lanes, b.lanes)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.lanes, b.lanes)}; }
inline Vec multiply_add(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)}; }
inline Vec maximum(Vec a, Vec b) { return {_mm256_max_ps(a.lanes, b.lanes)}; }
inline Vec minimum(Vec a, Vec b) { return {_mm256_min_ps(a.lanes, b.lanes)}; }

inline Lanes bits_of(__m256 mask) { return static_cast<Lanes>(_mm256_movemask_ps(mask)); }
inline Lanes greater(Vec a, Vec b) { return bits_of(_mm256_cmp_ps(a.lanes, b.lanes, _CMP_GT_OQ)); }
inline Lanes at_least(Vec a, Vec b) { return bits_of(_mm256_cmp_ps(a.lanes, b.lanes, _CMP_GE_OQ)); }
inline Lanes equal(Vec a, Vec b) { return bits_of(_mm256_cmp_ps(a.lanes, b.lanes, _CMP_EQ_OQ)); }
inline Lanes is_nan(Vec a) { return bits_of(_mm256_cmp_ps(a.lanes, a.lanes, _CMP_UNORD_Q)); }
inline Vec select(Lanes mask, Vec yes, Vec no) {
    return {_mm256_blendv_ps(no.lanes, yes.lanes, _mm256_castsi256_ps(lane_mask(mask)))};
}

inline float sum(Vec a) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.lanes), _mm256_extractf128_ps(a.lanes, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(Vec a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a.lanes), _mm256_extractf128_ps(a.lanes, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline Vec round_to_even(Vec a) {
    return {_mm256_round_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vec scale_by_power(Vec a, Vec n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.lanes), _mm256_set1_epi32(127));
    return {_mm256_mul_ps(a.lanes, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)))};
}

inline Vec from_f16(__m128i bits) { return {_mm256_cvtph_ps(bits)}; }
inline Vec from_bf16(__m128i bits) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
}
inline __m128i load_bits(const uint16_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline __m128i load_some_bits(const uint16_t* p, int count) {
    alignas(16) uint16_t lanes[8] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
}
inline Vec load_f16(const uint16_t* p) { return from_f16(load_bits(p)); }
inline Vec load_bf16(const uint16_t* p) { return from_bf16(load_bits(p)); }
inline Vec load_some_f16(const uint16_t* p, int count) { return from_f16(load_some_bits(p, count)); }
inline Vec load_some_bf16(const uint16_t* p, int count) { return from_bf16(load_some_bits(p, count)); }


inline Vec from_i8(__m128i bytes) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))}; }
inline Vec load_i8(const int8_t* p) { return from_i8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
inline Vec load_some_i8(const int8_t* p, int count) {
    alignas(16) int8_t lanes[16] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return from_i8(_mm_load_si128(reinterpret_cast<const __m128i*>(lanes)));
}
inline __m128i narrow(__m256i words) {
    const __m256i packed = _mm256_packus_epi32(words, words);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}
inline void store_i8(int8_t* p, Vec a) {
    const __m256i words = _mm256_cvtps_epi32(a.lanes);
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
}
inline void store_f16(uint16_t* p, Vec a) {
    const __m128i bits = _mm256_cvtps_ph(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bits);
}
inline void store_bf16(uint16_t* p, Vec a) {
    const __m256i bits = _mm256_castps_si256(a.lanes);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i kept = _mm256_blendv_epi8(rounded, quiet, lane_mask(is_nan(a)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(_mm256_srli_epi32(kept, 16)));
}

inline void deinterleave(Vec& a, Vec& b) {
    const __m256 low = _mm256_permute2f128_ps(a.lanes, b.lanes, 0x20);
    const __m256 high = _mm256_permute2f128_ps(a.lanes, b.lanes, 0x31);
    a.lanes = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0));
    b.lanes = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1));
}
inline void interleave(Vec& a, Vec& b) {
    const __m256 low = _mm256_unpacklo_ps(a.lanes, b.lanes);
    const __m256 high = _mm256_unpackhi_ps(a.lanes, b.lanes);
    a.lanes = _mm256_permute2f128_ps(low, high, 0x20);
    b.lanes = _mm256_permute2f128_ps(low, high, 0x31);
}

}  // namespace
