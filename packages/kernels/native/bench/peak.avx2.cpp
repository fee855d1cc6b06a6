#include <immintrin.h>

#include "peak.h"
#include "peak_loop.h"

namespace octavo::test {

namespace {

/// Products that are summed in 16 bits before they are widened, as in matrix/vector_avx2.h.
constexpr int kRun = 8;

int32_t int8_loop(int64_t rounds) {
    const __m256i a = _mm256_set1_epi8(3);
    const __m256i b = _mm256_set1_epi8(-2);
    const __m256i ones = _mm256_set1_epi16(1);
    return run_chains(
        rounds, _mm256_setzero_si256(),
        [&](__m256i sum) {
            __m256i narrow = _mm256_setzero_si256();
            for (int i = 0; i < kRun; ++i) {
                __m256i operand = a;
                // Keeps the products from being computed once for all.
                asm volatile("" : "+x"(operand));
                narrow = _mm256_add_epi16(narrow, _mm256_maddubs_epi16(operand, b));
            }
            return _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, ones));
        },
        [](__m256i x, __m256i y) { return _mm256_xor_si256(x, y); });
}

int32_t f32_loop(int64_t rounds) {
    const __m256 a = _mm256_set1_ps(1.0001f);
    const __m256 b = _mm256_set1_ps(0.999f);
    return run_chains(
        rounds, _mm256_setzero_ps(), [&](__m256 sum) { return _mm256_fmadd_ps(a, b, sum); },
        [](__m256 x, __m256 y) { return _mm256_add_ps(x, y); });
}

}  // namespace

Peak peak_avx2() { return {int8_loop, kChains * kRun * 64, nullptr, 0, f32_loop, kChains * 16}; }

}  // namespace octavo::test
