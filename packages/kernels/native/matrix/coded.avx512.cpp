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

#include "coded_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_avx512() { return kCodedTable; }

}  // namespace octavo
