#pragma once
#include "in_place_kernels.h"

// Products with bf16 weights where they lie. Included after the vocabulary of AVX-512 and
// `__m512 add_products(__m512 sum, __m512i weights, __m512i activations)`, which adds pairs as the path's FloatMultiply does.
namespace octavo {
namespace {

constexpr int64_t kBlockBytes = kFloatBlock * 2;
/// Columns, and bytes of a row, that are transposed at a time: sixteen pairs.
constexpr int64_t kStepBytes = 64;
constexpr int kSteps = kBlockBytes / kStepBytes;

/// 32 bytes of a stream below those of another.
SIMD_INLINE __m512i two_halves(const uint8_t* low, const uint8_t* high) {
    const __m512i below = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(low)));
    return _mm512_mask_broadcast_i64x4(below, 0xf0, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)));
}

/// Transposes 16 x 16 pairs: lane i of out[p] is pair p of stream i. Halves of lines are joined as they are loaded, which spares
/// a quarter of the shuffles.
SIMD_INLINE void load_pairs(const uint8_t* from, int64_t stride, __m512i (&out)[16]) {
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    SIMD_UNROLL
    for (int half = 0; half < 2; ++half) {
        __m512i row[8];
        __m512i pairs[8];
        SIMD_UNROLL
        for (int i = 0; i < 8; ++i) row[i] = two_halves(from + i * stride + 32 * half, from + (i + 8) * stride + 32 * half);
        SIMD_UNROLL
        for (int i = 0; i < 8; i += 2) {
            pairs[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
        }
        SIMD_UNROLL
        for (int i = 0; i < 8; i += 4) {
            row[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
            row[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
            row[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
            row[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
        }
        // 128-bit lanes of row[4 * q + p]: streams 4q.. of pairs p and p + 4, then streams 8 + 4q.. of the same.
        SIMD_UNROLL
        for (int p = 0; p < 4; ++p) {
            out[8 * half + p] = _mm512_permutex2var_epi64(row[p], even, row[4 + p]);
            out[8 * half + 4 + p] = _mm512_permutex2var_epi64(row[p], odd, row[4 + p]);
        }
    }
}

void prefetch(const uint8_t* from, int64_t lines) {
    for (int64_t i = 0; i < lines; ++i) _mm_prefetch(reinterpret_cast<const char*>(from + 64 * i), _MM_HINT_T0);
}

SIMD_INLINE void prefetch_lines(const uint8_t* from) {
    SIMD_UNROLL
    for (int i = 0; i < 16; ++i) _mm_prefetch(reinterpret_cast<const char*>(from + 64 * i), _MM_HINT_T0);
}

void spread(const uint8_t* row, int64_t blocks, uint8_t* out) {
    const int64_t patterns = spread_patterns(blocks);
    for (int64_t pattern = 0; pattern < patterns; ++pattern) {
        const uint8_t* lanes[16];
        for (int lane = 0; lane < 16; ++lane) lanes[lane] = row + (pattern * 16 + lane) % blocks * kBlockBytes;
        for (int64_t pair = 0; pair < kFloatBlock / 2; ++pair) {
            for (int lane = 0; lane < 16; ++lane) std::memcpy(out + 4 * lane, lanes[lane] + 4 * pair, 4);
            out += 64;
        }
    }
}

/// The lanes are sixteen blocks that follow each other in memory, of one row or of several: all sums of a block are independent
/// of those of another. Memory is thus read from one end to the other.
void multiply_one(const WeightRows& weights, const uint8_t* spread, float* partial, float* sums) {
    const int64_t patterns = spread_patterns(weights.blocks);
    int64_t pattern = 0;
    for (int64_t i = 0; i < weights.blocks; ++i) {
        const uint8_t* from = weights.data + i * 16 * kBlockBytes;
        const uint8_t* ahead = i + 1 < weights.blocks ? from + 16 * kBlockBytes : weights.next;
        const uint8_t* activations = spread + pattern * kFloatBlock / 2 * 64;
        if (++pattern == patterns) pattern = 0;
        __m512 sum = _mm512_setzero_ps();
        for (int step = 0; step < kSteps; ++step) {
            prefetch_lines(ahead + step * 1024);
            __m512i pairs[16];
            load_pairs(from + step * kStepBytes, kBlockBytes, pairs);
            SIMD_UNROLL
            for (int p = 0; p < 16; ++p) {
                sum = add_products(sum, pairs[p], _mm512_loadu_si512(activations + (step * 16 + p) * 64));
            }
            // Two steps at once would not fit in the registers.
            asm volatile("" : "+v"(sum)::"memory");
        }
        _mm512_storeu_ps(partial + i * 16, sum);
    }
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(weights.blocks)));
    __m512 total = _mm512_i32gather_ps(at, partial, 4);
    for (int64_t block = 1; block < weights.blocks; ++block) {
        total = _mm512_add_ps(total, _mm512_i32gather_ps(at, partial + block, 4));
    }
    _mm512_storeu_ps(sums, total);
}

/// The lanes are the sixteen rows. Prefetches `lines` cache lines at `ahead` for every sixteen of weights.
template <int C>
void multiply_rows(const WeightRows& weights, const uint8_t* rows, int64_t num_rows, const uint8_t* ahead, int64_t lines,
                   float* sums, int64_t stride) {
    const int64_t row_bytes = weights.row_bytes();
    for (int64_t block = 0; block < weights.blocks; ++block) {
        const uint8_t* from = weights.data + block * kBlockBytes;
        const uint8_t* activations = rows + block * num_rows * kBlockBytes;
        __m512 sum[C];
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) sum[c] = _mm512_setzero_ps();
        for (int step = 0; step < kSteps; ++step) {
            prefetch(ahead, lines);
            ahead += lines * 64;
            __m512i pairs[16];
            load_pairs(from + step * kStepBytes, row_bytes, pairs);
            SIMD_UNROLL
            for (int p = 0; p < 16; ++p) {
                SIMD_UNROLL
                for (int c = 0; c < C; ++c) {
                    int32_t pair;
                    std::memcpy(&pair, activations + c * kBlockBytes + step * kStepBytes + 4 * p, sizeof pair);
                    sum[c] = add_products(sum[c], pairs[p], _mm512_set1_epi32(pair));
                }
            }
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) asm volatile("" : "+v"(sum[c])::"memory");
        }
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            float* out = sums + c * stride;
            _mm512_storeu_ps(out, block == 0 ? sum[c] : _mm512_add_ps(_mm512_loadu_ps(out), sum[c]));
        }
    }
}

/// In passes of about as many rows each; each pass prefetches its share of the next weights.
void multiply(const WeightRows& weights, const uint8_t* rows, int64_t num_rows, float* sums, int64_t stride) {
    constexpr int kMost = 8;
    static constexpr void (*kByRows[kMost])(const WeightRows&, const uint8_t*, int64_t, const uint8_t*, int64_t, float*, int64_t) = {
        multiply_rows<1>, multiply_rows<2>, multiply_rows<3>, multiply_rows<4>,
        multiply_rows<5>, multiply_rows<6>, multiply_rows<7>, multiply_rows<8>};
    const int64_t passes = (num_rows + kMost - 1) / kMost;
    const int64_t lines = (16 + passes - 1) / passes;
    const int64_t pass_bytes = weights.blocks * kSteps * lines * 64;
    for (int64_t pass = 0; pass < passes; ++pass) {
        const int64_t first = num_rows * pass / passes;
        const int64_t count = num_rows * (pass + 1) / passes - first;
        kByRows[count - 1](weights, rows + first * kBlockBytes, num_rows, weights.next + pass * pass_bytes, lines,
                           sums + first * stride, stride);
    }
}

void unpack(const uint8_t* weights, int64_t row_bytes, uint8_t* panel) {
    for (int step = 0; step < kSteps; ++step) {
        __m512i pairs[16];
        load_pairs(weights + step * kStepBytes, row_bytes, pairs);
        SIMD_UNROLL
        for (int p = 0; p < 16; ++p) _mm512_storeu_si512(panel + (step * 16 + p) * 64, pairs[p]);
    }
}

bool finite(const uint8_t* values, int64_t count) {
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 bad = 0;
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        bad |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(_mm512_loadu_si512(values + 2 * i), exponent), exponent);
    }
    for (; i < count; ++i) {
        uint16_t value;
        std::memcpy(&value, values + 2 * i, sizeof value);
        bad |= (value & 0x7f80) == 0x7f80;
    }
    return bad == 0;
}

constexpr InPlaceKernelTable make_in_place_kernels() { return {spread, multiply_one, multiply, unpack, prefetch, finite}; }

}  // namespace
}  // namespace octavo
