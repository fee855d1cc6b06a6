#include <immintrin.h>

#include "../core/half.h"
#include "coded_kernels.h"
#include "layout.h"

namespace octavo {

namespace {

struct Table {
    __m512 entries;
    explicit Table(const float* table) : entries(_mm512_loadu_ps(table)) {}

    void lookup(const uint8_t* codes, float* out) const {
        const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
        // vpermps looks at the low four bits of an index alone.
        const __m512i index = _mm512_inserti64x4(_mm512_castsi256_si512(bytes), _mm256_srli_epi32(bytes, 4), 1);
        _mm512_storeu_ps(out, _mm512_permutexvar_ps(index, entries));
    }
};

// Significand, with its leading bit unless the code is subnormal, times a power of two with the sign. Shifting the fields into an
// f32 would make subnormals of it, which are slow.
void from_e4m3(const uint8_t* codes, float* out) {
    const __m512i code = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m512i exponent = _mm512_and_si512(_mm512_srli_epi32(code, 3), _mm512_set1_epi32(15));
    const __m512i normal = _mm512_min_epi32(exponent, _mm512_set1_epi32(1));
    const __m512i mantissa = _mm512_and_si512(code, _mm512_set1_epi32(7));
    const __m512 significand = _mm512_cvtepi32_ps(_mm512_add_epi32(mantissa, _mm512_slli_epi32(normal, 3)));
    const __m512i biased = _mm512_add_epi32(_mm512_sub_epi32(exponent, normal), _mm512_set1_epi32(118));
    const __m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(code, 7), 31);
    const __m512i power = _mm512_or_si512(sign, _mm512_slli_epi32(biased, 23));
    _mm512_storeu_ps(out, _mm512_mul_ps(significand, _mm512_castsi512_ps(power)));
}

#include "coded_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_avx512() { return kCodedTable; }

}  // namespace octavo
