#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define SIMD_INLINE inline __attribute__((always_inline))
#define SIMD_UNROLL _Pragma("GCC unroll 16")

// AVX2 with FMA and F16C: eight lanes. The operations are documented in avx512.h.
namespace octavo {
namespace {

struct Vec {
    static constexpr int width = 8;
    __m256 lanes;
};

using Lanes = uint32_t;

SIMD_INLINE __m256i lane_mask(Lanes bits) {
    const __m256i lane_bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane_bit), lane_bit);
}
SIMD_INLINE __m256i first_lanes(int count) { return lane_mask((1u << count) - 1u); }

SIMD_INLINE Vec zero() { return {_mm256_setzero_ps()}; }
SIMD_INLINE Vec splat(float x) { return {_mm256_set1_ps(x)}; }
SIMD_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
SIMD_INLINE Vec load_some(const float* p, int count) { return {_mm256_maskload_ps(p, first_lanes(count))}; }
SIMD_INLINE void store(float* p, Vec a) { _mm256_storeu_ps(p, a.lanes); }
SIMD_INLINE void store_some(float* p, Vec a, int count) { _mm256_maskstore_ps(p, first_lanes(count), a.lanes); }

SIMD_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec multiply_add(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)}; }
SIMD_INLINE Vec maximum(Vec a, Vec b) { return {_mm256_max_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec minimum(Vec a, Vec b) { return {_mm256_min_ps(a.lanes, b.lanes)}; }

SIMD_INLINE Lanes bits_of(__m256 mask) { return static_cast<Lanes>(_mm256_movemask_ps(mask)); }
SIMD_INLINE Lanes greater(Vec a, Vec b) { return bits_of(_mm256_cmp_ps(a.lanes, b.lanes, _CMP_GT_OQ)); }
SIMD_INLINE Lanes at_least(Vec a, Vec b) { return bits_of(_mm256_cmp_ps(a.lanes, b.lanes, _CMP_GE_OQ)); }
SIMD_INLINE Lanes equal(Vec a, Vec b) { return bits_of(_mm256_cmp_ps(a.lanes, b.lanes, _CMP_EQ_OQ)); }
SIMD_INLINE Lanes is_nan(Vec a) { return bits_of(_mm256_cmp_ps(a.lanes, a.lanes, _CMP_UNORD_Q)); }
SIMD_INLINE Vec select(Lanes mask, Vec yes, Vec no) {
    return {_mm256_blendv_ps(no.lanes, yes.lanes, _mm256_castsi256_ps(lane_mask(mask)))};
}

SIMD_INLINE float sum(Vec a) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.lanes), _mm256_extractf128_ps(a.lanes, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
SIMD_INLINE float largest(Vec a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a.lanes), _mm256_extractf128_ps(a.lanes, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

SIMD_INLINE Vec round_to_even(Vec a) {
    return {_mm256_round_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
SIMD_INLINE Vec scale_by_power(Vec a, Vec n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.lanes), _mm256_set1_epi32(127));
    return {_mm256_mul_ps(a.lanes, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)))};
}

SIMD_INLINE Vec from_f16(__m128i bits) { return {_mm256_cvtph_ps(bits)}; }
SIMD_INLINE Vec from_bf16(__m128i bits) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
}
SIMD_INLINE __m128i load_bits(const uint16_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
SIMD_INLINE __m128i load_some_bits(const uint16_t* p, int count) {
    alignas(16) uint16_t lanes[8] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
}
SIMD_INLINE void store_f16(uint16_t* p, Vec a) {
    const __m128i bits = _mm256_cvtps_ph(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bits);
}
SIMD_INLINE __m128i narrow(__m256i words) {
    const __m256i packed = _mm256_packus_epi32(words, words);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}
SIMD_INLINE void store_bf16(uint16_t* p, Vec a) {
    const __m256i bits = _mm256_castps_si256(a.lanes);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i kept = _mm256_blendv_epi8(rounded, quiet, lane_mask(is_nan(a)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(_mm256_srli_epi32(kept, 16)));
}

SIMD_INLINE void deinterleave(Vec& a, Vec& b) {
    const __m256 low = _mm256_permute2f128_ps(a.lanes, b.lanes, 0x20);
    const __m256 high = _mm256_permute2f128_ps(a.lanes, b.lanes, 0x31);
    a.lanes = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0));
    b.lanes = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1));
}
SIMD_INLINE void interleave(Vec& a, Vec& b) {
    const __m256 low = _mm256_unpacklo_ps(a.lanes, b.lanes);
    const __m256 high = _mm256_unpackhi_ps(a.lanes, b.lanes);
    a.lanes = _mm256_permute2f128_ps(low, high, 0x20);
    b.lanes = _mm256_permute2f128_ps(low, high, 0x31);
}

struct IntVec {
    __m256i lanes;
};

SIMD_INLINE IntVec splat_int(int32_t x) { return {_mm256_set1_epi32(x)}; }
SIMD_INLINE __m256i load_register(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
SIMD_INLINE IntVec load_ints(const uint8_t* p) { return {load_register(p)}; }
SIMD_INLINE IntVec widen_u8(const uint8_t* p) {
    return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
SIMD_INLINE IntVec widen_i8(const int8_t* p) {
    return {_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
SIMD_INLINE IntVec operator+(IntVec a, IntVec b) { return {_mm256_add_epi32(a.lanes, b.lanes)}; }
SIMD_INLINE IntVec operator&(IntVec a, IntVec b) { return {_mm256_and_si256(a.lanes, b.lanes)}; }
template <int Count>
SIMD_INLINE IntVec shift_left(IntVec a) {
    return {_mm256_slli_epi32(a.lanes, Count)};
}
template <int Count>
SIMD_INLINE IntVec shift_right(IntVec a) {
    return {_mm256_srli_epi32(a.lanes, Count)};
}
SIMD_INLINE IntVec maximum(IntVec a, IntVec b) { return {_mm256_max_epi32(a.lanes, b.lanes)}; }
SIMD_INLINE int32_t sum(IntVec a) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(a.lanes), _mm256_extracti128_si256(a.lanes, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
SIMD_INLINE int32_t largest(IntVec a) {
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(a.lanes), _mm256_extracti128_si256(a.lanes, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
SIMD_INLINE Vec to_floats(IntVec a) { return {_mm256_cvtepi32_ps(a.lanes)}; }
SIMD_INLINE IntVec to_ints(Vec a) { return {_mm256_cvtps_epi32(a.lanes)}; }
SIMD_INLINE Vec as_floats(IntVec a) { return {_mm256_castsi256_ps(a.lanes)}; }
SIMD_INLINE IntVec as_ints(Vec a) { return {_mm256_castps_si256(a.lanes)}; }
SIMD_INLINE void store_i8(int8_t* p, IntVec a) {
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(a.lanes), _mm256_extracti128_si256(a.lanes, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
}

struct FloatTable {
    __m256 low;
    __m256 high;
    explicit FloatTable(const float* table) : low(_mm256_loadu_ps(table)), high(_mm256_loadu_ps(table + 8)) {}
    SIMD_INLINE Vec look_up(IntVec index) const {
        // Permutations look at the low three bits of an index alone; bit 3, moved to the sign, chooses the half.
        const __m256 half = _mm256_castsi256_ps(_mm256_slli_epi32(index.lanes, 28));
        return {_mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index.lanes), _mm256_permutevar8x32_ps(high, index.lanes), half)};
    }
};

struct ByteVec {
    __m256i lanes;
};

SIMD_INLINE ByteVec load_bytes(const uint8_t* p) { return {load_register(p)}; }
SIMD_INLINE void store_bytes(uint8_t* p, ByteVec a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lanes); }
SIMD_INLINE ByteVec splat_byte(int x) { return {_mm256_set1_epi8(static_cast<char>(x))}; }
SIMD_INLINE ByteVec operator|(ByteVec a, ByteVec b) { return {_mm256_or_si256(a.lanes, b.lanes)}; }
SIMD_INLINE ByteVec operator&(ByteVec a, ByteVec b) { return {_mm256_and_si256(a.lanes, b.lanes)}; }
SIMD_INLINE ByteVec operator^(ByteVec a, ByteVec b) { return {_mm256_xor_si256(a.lanes, b.lanes)}; }
template <int Count>
SIMD_INLINE ByteVec shift_bytes(ByteVec a) {
    if constexpr (Count > 0) return {_mm256_slli_epi16(a.lanes, Count)};
    if constexpr (Count < 0) return {_mm256_srli_epi16(a.lanes, -Count)};
    return a;
}
SIMD_INLINE ByteVec pinned(ByteVec a) { return a; }
SIMD_INLINE ByteVec load_table(const uint8_t* p) {
    return {_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
SIMD_INLINE ByteVec look_up(ByteVec table, ByteVec codes) { return {_mm256_shuffle_epi8(table.lanes, codes.lanes)}; }

SIMD_INLINE ByteVec load_quad(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return {_mm256_set1_epi32(quad)};
}
/// VPMADDUBSW adds two products in 16 bits with saturation: 63 * 127 * 2 fits, 255 * 127 * 2 does not. 8-bit codes are
/// therefore dotted as |u - 128| <= 128 times the activation with the sign moved over: 128 * 127 * 2 fits.
constexpr bool kCentredBytes = true;
/// As many pairs of products as 16 bits hold: 8 * 2 * 15 * 127, 4 * 2 * 31 * 127 and 2 * 2 * 63 * 127 are below 32768.
template <int Bits>
constexpr int kRun = Bits <= 4 ? 8 : Bits == 5 ? 4 : Bits == 6 ? 2 : 1;
template <int Bits>
SIMD_INLINE IntVec dot(IntVec sum, ByteVec w, ByteVec quad) {
    const __m256i pairs = Bits == 8 ? _mm256_maddubs_epi16(_mm256_abs_epi8(w.lanes), _mm256_sign_epi8(quad.lanes, w.lanes))
                                    : _mm256_maddubs_epi16(w.lanes, quad.lanes);
    __m256i total = _mm256_add_epi16(sum.lanes, pairs);
    // GCC would add the products of a run up in a tree, which takes more registers than there are.
    asm("" : "+x"(total));
    return {total};
}
SIMD_INLINE IntVec widen(IntVec sum, IntVec narrow) {
    return {_mm256_add_epi32(sum.lanes, _mm256_madd_epi16(narrow.lanes, _mm256_set1_epi16(1)))};
}

}  // namespace
}  // namespace octavo

#include "sixteen.h"
