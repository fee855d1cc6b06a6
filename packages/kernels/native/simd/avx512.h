#pragma once
// GCC 12 takes the deliberately undefined operands inside its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define SIMD_INLINE inline __attribute__((always_inline))
#define SIMD_UNROLL _Pragma("GCC unroll 16")

// The vocabulary of vectors that kernels are written in, here for AVX-512 with VNNI: registers of sixteen 32-bit lanes. The headers
// of the other instruction sets define the same names; sixteen.h adds what is the same for all of them. Everything sits in an
// anonymous namespace: each instruction-set file has its own copy, so that the linker can never hand a baseline caller code
// built for newer instructions.
namespace octavo {
namespace {

struct Vec {
    static constexpr int width = 16;
    __m512 lanes;
};

/// One bit a lane.
using Lanes = uint32_t;

SIMD_INLINE __mmask16 lane_mask(int count) { return static_cast<__mmask16>((1u << count) - 1u); }

SIMD_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
SIMD_INLINE Vec splat(float x) { return {_mm512_set1_ps(x)}; }
SIMD_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
SIMD_INLINE Vec load_some(const float* p, int count) { return {_mm512_maskz_loadu_ps(lane_mask(count), p)}; }
SIMD_INLINE void store(float* p, Vec a) { _mm512_storeu_ps(p, a.lanes); }
SIMD_INLINE void store_some(float* p, Vec a, int count) { _mm512_mask_storeu_ps(p, lane_mask(count), a.lanes); }

SIMD_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.lanes, b.lanes)}; }
/// a * b + c, rounded once where the machine can.
SIMD_INLINE Vec multiply_add(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)}; }
/// Both return b where either is NaN.
SIMD_INLINE Vec maximum(Vec a, Vec b) { return {_mm512_max_ps(a.lanes, b.lanes)}; }
SIMD_INLINE Vec minimum(Vec a, Vec b) { return {_mm512_min_ps(a.lanes, b.lanes)}; }

SIMD_INLINE Lanes greater(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_GT_OQ); }
SIMD_INLINE Lanes at_least(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_GE_OQ); }
SIMD_INLINE Lanes equal(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.lanes, b.lanes, _CMP_EQ_OQ); }
SIMD_INLINE Lanes is_nan(Vec a) { return _mm512_cmp_ps_mask(a.lanes, a.lanes, _CMP_UNORD_Q); }
SIMD_INLINE Vec select(Lanes mask, Vec yes, Vec no) {
    return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), no.lanes, yes.lanes)};
}

SIMD_INLINE float sum(Vec a) { return _mm512_reduce_add_ps(a.lanes); }
SIMD_INLINE float largest(Vec a) { return _mm512_reduce_max_ps(a.lanes); }

SIMD_INLINE Vec round_to_even(Vec a) {
    return {_mm512_roundscale_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// a * 2^n for an integral n in [-126, 127].
SIMD_INLINE Vec scale_by_power(Vec a, Vec n) { return {_mm512_scalef_ps(a.lanes, n.lanes)}; }

SIMD_INLINE Vec from_f16(__m256i bits) { return {_mm512_cvtph_ps(bits)}; }
SIMD_INLINE Vec from_bf16(__m256i bits) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
SIMD_INLINE __m256i load_bits(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
SIMD_INLINE __m256i load_some_bits(const uint16_t* p, int count) { return _mm256_maskz_loadu_epi16(lane_mask(count), p); }

/// Rounded to nearest, ties to even; NaN stays NaN.
SIMD_INLINE void store_f16(uint16_t* p, Vec a) {
    const __m256i bits = _mm512_cvtps_ph(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
}
SIMD_INLINE void store_bf16(uint16_t* p, Vec a) {
    const __m512i bits = _mm512_castps_si512(a.lanes);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i kept = _mm512_mask_blend_epi32(static_cast<__mmask16>(is_nan(a)), rounded, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

/// a and b hold pairs one after another; afterwards a holds the first of each, b the second. `interleave` undoes it.
SIMD_INLINE void deinterleave(Vec& a, Vec& b) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512 first = _mm512_permutex2var_ps(a.lanes, even, b.lanes);
    b.lanes = _mm512_permutex2var_ps(a.lanes, odd, b.lanes);
    a.lanes = first;
}
SIMD_INLINE void interleave(Vec& a, Vec& b) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const __m512 first = _mm512_permutex2var_ps(a.lanes, low, b.lanes);
    b.lanes = _mm512_permutex2var_ps(a.lanes, high, b.lanes);
    a.lanes = first;
}

/// Lanes of int32.
struct IntVec {
    __m512i lanes;
};

SIMD_INLINE IntVec splat_int(int32_t x) { return {_mm512_set1_epi32(x)}; }
SIMD_INLINE IntVec load_ints(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
/// One byte a lane.
SIMD_INLINE IntVec widen_u8(const uint8_t* p) {
    return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
SIMD_INLINE IntVec widen_i8(const int8_t* p) {
    return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
SIMD_INLINE IntVec operator+(IntVec a, IntVec b) { return {_mm512_add_epi32(a.lanes, b.lanes)}; }
SIMD_INLINE IntVec operator&(IntVec a, IntVec b) { return {_mm512_and_si512(a.lanes, b.lanes)}; }
template <int Count>
SIMD_INLINE IntVec shift_left(IntVec a) {
    return {_mm512_slli_epi32(a.lanes, Count)};
}
/// Zeros are shifted in.
template <int Count>
SIMD_INLINE IntVec shift_right(IntVec a) {
    return {_mm512_srli_epi32(a.lanes, Count)};
}
SIMD_INLINE IntVec maximum(IntVec a, IntVec b) { return {_mm512_max_epi32(a.lanes, b.lanes)}; }
SIMD_INLINE int32_t sum(IntVec a) { return _mm512_reduce_add_epi32(a.lanes); }
SIMD_INLINE int32_t largest(IntVec a) { return _mm512_reduce_max_epi32(a.lanes); }
SIMD_INLINE Vec to_floats(IntVec a) { return {_mm512_cvtepi32_ps(a.lanes)}; }
/// To nearest, ties to even.
SIMD_INLINE IntVec to_ints(Vec a) { return {_mm512_cvtps_epi32(a.lanes)}; }
SIMD_INLINE Vec as_floats(IntVec a) { return {_mm512_castsi512_ps(a.lanes)}; }
SIMD_INLINE IntVec as_ints(Vec a) { return {_mm512_castps_si512(a.lanes)}; }
/// The low bytes of values in [-128, 127].
SIMD_INLINE void store_i8(int8_t* p, IntVec a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.lanes));
}

/// Entries of a table of sixteen, by the low four bits of each lane.
struct FloatTable {
    __m512 entries;
    explicit FloatTable(const float* table) : entries(_mm512_loadu_ps(table)) {}
    SIMD_INLINE Vec look_up(IntVec index) const { return {_mm512_permutexvar_ps(index.lanes, entries)}; }
};

/// Four bytes a lane.
struct ByteVec {
    __m512i lanes;
};

SIMD_INLINE ByteVec load_bytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
SIMD_INLINE void store_bytes(uint8_t* p, ByteVec a) { _mm512_storeu_si512(p, a.lanes); }
SIMD_INLINE ByteVec splat_byte(int x) { return {_mm512_set1_epi8(static_cast<char>(x))}; }
SIMD_INLINE ByteVec operator|(ByteVec a, ByteVec b) { return {_mm512_or_si512(a.lanes, b.lanes)}; }
SIMD_INLINE ByteVec operator&(ByteVec a, ByteVec b) { return {_mm512_and_si512(a.lanes, b.lanes)}; }
SIMD_INLINE ByteVec operator^(ByteVec a, ByteVec b) { return {_mm512_xor_si512(a.lanes, b.lanes)}; }
/// Left by `Count`, right when it is negative. Bits that leave a byte may enter its neighbour: to be masked.
template <int Count>
SIMD_INLINE ByteVec shift_bytes(ByteVec a) {
    if constexpr (Count > 0) return {_mm512_slli_epi16(a.lanes, Count)};
    if constexpr (Count < 0) return {_mm512_srli_epi16(a.lanes, -Count)};
    return a;
}
/// Keeps a vector in a register: GCC would rather load it again for each use, and loads are what the tiles run out of.
SIMD_INLINE ByteVec pinned(ByteVec a) {
    asm("" : "+v"(a.lanes));
    return a;
}
/// Sixteen bytes, to be looked up by codes below 16.
SIMD_INLINE ByteVec load_table(const uint8_t* p) {
    return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
SIMD_INLINE ByteVec look_up(ByteVec table, ByteVec codes) { return {_mm512_shuffle_epi8(table.lanes, codes.lanes)}; }

/// The same four signed bytes in every lane.
SIMD_INLINE ByteVec load_quad(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return {_mm512_set1_epi32(quad)};
}
/// Whether `dot` takes codes of 8 bits as signed u - 128.
constexpr bool kCentredBytes = false;
/// How many products of codes of so many bits `dot` may sum before their 16-bit lanes must be widened; 0: it sums in 32 bits.
template <int Bits>
constexpr int kRun = 0;
/// Adds to each lane the products of its four unsigned codes of `Bits` bits and four signed bytes.
template <int Bits>
SIMD_INLINE IntVec dot(IntVec sum, ByteVec w, ByteVec quad) {
    return {_mm512_dpbusd_epi32(sum.lanes, w.lanes, quad.lanes)};
}
SIMD_INLINE IntVec widen(IntVec sum, IntVec) { return sum; }

}  // namespace
}  // namespace octavo

#include "sixteen.h"
