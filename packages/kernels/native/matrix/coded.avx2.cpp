#include <immintrin.h>

#include "../core/half.h"
#include "coded_kernels.h"
#include "layout.h"

namespace octavo {

namespace {

struct Table {
    __m256 low;
    __m256 high;
    explicit Table(const float* table) : low(_mm256_loadu_ps(table)), high(_mm256_loadu_ps(table + 8)) {}

    __m256 pick(__m256i index) const {
        // Bit 3 of an index, moved to the sign, chooses the half.
        const __m256 half = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
        return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index), half);
    }

    void lookup(const uint8_t* codes, float* out) const {
        const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
        _mm256_storeu_ps(out, pick(_mm256_and_si256(bytes, _mm256_set1_epi32(0x0f))));
        _mm256_storeu_ps(out + 8, pick(_mm256_srli_epi32(bytes, 4)));
    }
};

// Significand, with its leading bit unless the code is subnormal, times a power of two with the sign. Shifting the fields into an
// f32 would make subnormals of it, which are slow.
__m256 from_e4m3(__m256i code) {
    const __m256i exponent = _mm256_and_si256(_mm256_srli_epi32(code, 3), _mm256_set1_epi32(15));
    const __m256i normal = _mm256_min_epi32(exponent, _mm256_set1_epi32(1));
    const __m256i mantissa = _mm256_and_si256(code, _mm256_set1_epi32(7));
    const __m256 significand = _mm256_cvtepi32_ps(_mm256_add_epi32(mantissa, _mm256_slli_epi32(normal, 3)));
    const __m256i biased = _mm256_add_epi32(_mm256_sub_epi32(exponent, normal), _mm256_set1_epi32(118));
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(code, 7), 31);
    return _mm256_mul_ps(significand, _mm256_castsi256_ps(_mm256_or_si256(sign, _mm256_slli_epi32(biased, 23))));
}

void from_e4m3(const uint8_t* codes, float* out) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    _mm256_storeu_ps(out, from_e4m3(_mm256_cvtepu8_epi32(bytes)));
    _mm256_storeu_ps(out + 8, from_e4m3(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))));
}

#include "coded_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_avx2() { return kCodedTable; }

}  // namespace octavo
