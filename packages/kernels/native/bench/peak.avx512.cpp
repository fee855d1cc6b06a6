#include <immintrin.h>

#include "peak.h"
#include "peak_loop.h"

namespace octavo::test {

namespace {

int32_t int8_loop(int64_t rounds) {
    const __m512i a = _mm512_set1_epi8(3);
    const __m512i b = _mm512_set1_epi8(-2);
    return run_chains(
        rounds, _mm512_setzero_si512(), [&](__m512i sum) { return _mm512_dpbusd_epi32(sum, a, b); },
        [](__m512i x, __m512i y) { return _mm512_xor_si512(x, y); });
}

int32_t f32_loop(int64_t rounds) {
    const __m512 a = _mm512_set1_ps(1.0001f);
    const __m512 b = _mm512_set1_ps(0.999f);
    return run_chains(
        rounds, _mm512_setzero_ps(), [&](__m512 sum) { return _mm512_fmadd_ps(a, b, sum); },
        [](__m512 x, __m512 y) { return _mm512_add_ps(x, y); });
}

}  // namespace

Peak peak_avx512() { return {int8_loop, kChains * 128, nullptr, 0, f32_loop, kChains * 32}; }

}  // namespace octavo::test
