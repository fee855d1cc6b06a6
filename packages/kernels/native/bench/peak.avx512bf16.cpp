#include <immintrin.h>

#include "peak.h"
#include "peak_loop.h"

namespace octavo::test {

namespace {

int32_t bf16_loop(int64_t rounds) {
    const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80);
    const __m512bh b = (__m512bh)_mm512_set1_epi32(0x3f7f3f7f);
    return run_chains(
        rounds, _mm512_setzero_ps(), [&](__m512 sum) { return _mm512_dpbf16_ps(sum, a, b); },
        [](__m512 x, __m512 y) { return _mm512_add_ps(x, y); });
}

}  // namespace

Peak peak_avx512_bf16() { return {nullptr, 0, bf16_loop, kChains * 64, nullptr, 0}; }

}  // namespace octavo::test
