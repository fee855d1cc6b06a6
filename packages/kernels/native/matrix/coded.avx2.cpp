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

#include "coded_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_avx2() { return kCodedTable; }

}  // namespace octavo
