#include <immintrin.h>

#include <cstring>

#include "../../core/half.h"
#include "codebook_kernels.h"
#include "../quantised/layout.h"

namespace octavo {

namespace {

constexpr bool kPairs = false;

inline void widen_halves(const uint16_t* halves, float* out) {
    const __m128i* from = reinterpret_cast<const __m128i*>(halves);
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(from)));
    _mm256_storeu_ps(out + 8, _mm256_cvtph_ps(_mm_loadu_si128(from + 1)));
}

struct Table {
    __m256 low;
    __m256 high;
    explicit Table(const float* table) : low(_mm256_loadu_ps(table)), high(_mm256_loadu_ps(table + 8)) {}

    __m256 pick(__m256i index) const {
        // Bit 3 of an index, moved to the sign, chooses the half.
        const __m256 half = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
        return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index), half);
    }

    void lookup(const uint8_t* codes, float* even, float* odd) const {
        for (int i = 0; i < kPanelRows; i += 8) {
            // Permutations look at the low three bits of an index alone.
            const __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i)));
            _mm256_storeu_ps(even + i, pick(index));
            _mm256_storeu_ps(odd + i, pick(_mm256_srli_epi32(index, 4)));
        }
    }
};

#include "codebook_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_avx2() {
    static constexpr CodedKernelTable table{kPairs,
                                            nullptr,
                                            {decode_values<CodesF8>, decode_weights<CodesF8>, nullptr},
                                            {decode_values<CodesU8>, decode_weights<CodesU8>, nullptr},
                                            {decode_values<CodesTable4>, decode_weights<CodesTable4>, nullptr}};
    return table;
}

}  // namespace octavo
