#include "../../simd/avx512.h"

namespace octavo {
namespace {

SIMD_INLINE __m512 add_products(__m512 sum, __m512i weights, __m512i activations) {
    return _mm512_dpbf16_ps(sum, (__m512bh)weights, (__m512bh)activations);
}

}  // namespace
}  // namespace octavo

#include "in_place_products.h"

namespace octavo {

const InPlaceKernelTable in_place_kernels_avx512_bf16 = make_in_place_kernels();

}  // namespace octavo
