#include <immintrin.h>

#include <climits>
#include <cstring>
#include <utility>

#include "../../core/half.h"
#include "../float/float_kernels.h"
#include "quantised_kernels.h"

#define V_INLINE inline __attribute__((always_inline))
#define V_UNROLL _Pragma("GCC unroll 8")

namespace octavo {

namespace {

#include "../../simd/vector_avx2.h"

#include "../float/float_products.h"
#include "quantised_panel.h"
#include "quantised_products.h"

}  // namespace

const QuantisedKernelTable& quantised_kernels_avx2() { return kQuantisedTable; }

const FloatKernelTable& float_kernels_avx2() {
    static constexpr FloatKernelTable table{float_multiply<CodecF32>, float_multiply<CodecF16>, float_multiply<CodecBf16>,
                                            round_to_bf16, V::kFloatTilePanels};
    return table;
}

}  // namespace octavo
