#include <immintrin.h>

#include <climits>
#include <cstring>
#include <utility>

#include "../../core/half.h"
#include "../float/float_kernels.h"
#include "quantised_kernels.h"

#define V_INLINE inline __attribute__((always_inline))
#define V_UNROLL _Pragma("GCC unroll 8")

// GCC 12 takes its own _mm512_undefined_ps() for an uninitialised variable.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace octavo {

namespace {

#include "../../simd/vector_avx512.h"

#include "../float/float_products.h"
#include "quantised_panel.h"
#include "quantised_products.h"

}  // namespace

const QuantisedKernelTable& quantised_kernels_avx512() { return kQuantisedTable; }

const FloatKernelTable& float_kernels_avx512() {
    static constexpr FloatKernelTable table{float_multiply<CodecF32>, float_multiply<CodecF16>, float_multiply<CodecBf16>,
                                            round_to_bf16, V::kFloatTilePanels};
    return table;
}

}  // namespace octavo
