#include <immintrin.h>

#include <cstring>

#include "../../core/half.h"
#include "float_kernels.h"
#include "../quantised/layout.h"

#define V_INLINE inline __attribute__((always_inline))
#define V_UNROLL _Pragma("GCC unroll 8")

// GCC 12 takes its own _mm512_undefined_ps() for an uninitialised variable.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace octavo {

namespace {

#include "../../simd/vector_avx512.h"

#include "float_products.h"

/// Pairs of bf16 multiplied and summed by VDPBF16PS, which treats subnormals as zero.
struct CodecBf16Dot {
    static constexpr int kColumns = 2;
    static constexpr int64_t kWeightBytes = 4 * kPanelRows;
    static constexpr int64_t kActivationBytes = 4;
    using Weights = __m512i;
    using Activations = __m512i;
    static V_INLINE Weights load(const uint8_t* p) { return V::pinned(_mm512_loadu_si512(p)); }
    static V_INLINE Activations broadcast(const uint8_t* p) {
        int32_t pair;
        std::memcpy(&pair, p, sizeof pair);
        return _mm512_set1_epi32(pair);
    }
    static V_INLINE __m512 add_product(Weights w, Activations a, __m512 sum) {
        return _mm512_dpbf16_ps(sum, (__m512bh)w, (__m512bh)a);
    }
};

}  // namespace

const FloatKernelTable& float_kernels_avx512_bf16() {
    static constexpr FloatKernelTable table{float_multiply<CodecF32>, float_multiply<CodecF16>, float_multiply<CodecBf16Dot>,
                                            round_to_bf16, V::kFloatTilePanels};
    return table;
}

}  // namespace octavo
