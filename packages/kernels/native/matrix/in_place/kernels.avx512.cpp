#include "../../simd/avx512.h"

namespace octavo {
namespace {

/// Two fused steps, odd column first, as CodecBf16 has them.
SIMD_INLINE __m512 add_products(__m512 sum, __m512i weights, __m512i activations) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    const auto odd = [&](__m512i pairs) { return _mm512_castsi512_ps(_mm512_and_si512(pairs, high)); };
    const auto even = [](__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); };
    return _mm512_fmadd_ps(even(weights), even(activations), _mm512_fmadd_ps(odd(weights), odd(activations), sum));
}

}  // namespace
}  // namespace octavo

#include "in_place_products.h"

namespace octavo {

const InPlaceKernelTable in_place_kernels_avx512 = make_in_place_kernels();

}  // namespace octavo
