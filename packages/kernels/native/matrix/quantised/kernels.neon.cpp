// Dot products are asked for here as well as by the build's flags: a plain ARMv8.2 target lacks them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("arch=armv8.2-a+fp16+dotprod")
#endif

#include <arm_neon.h>

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

#include "../../simd/vector_neon.h"

#include "../float/float_products.h"
#include "quantised_panel.h"
#include "quantised_products.h"

}  // namespace

const QuantisedKernelTable& quantised_kernels_neon() { return kQuantisedTable; }

const FloatKernelTable& float_kernels_neon() {
    static constexpr FloatKernelTable table{float_multiply<CodecF32>, float_multiply<CodecF16>, float_multiply<CodecBf16>,
                                            round_to_bf16, V::kFloatTilePanels};
    return table;
}

}  // namespace octavo
