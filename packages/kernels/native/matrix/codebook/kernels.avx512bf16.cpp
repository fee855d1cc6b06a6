#include "../../simd/avx512.h"

#include "codebook_panel.h"

namespace octavo {

namespace {

/// As the bf16 products of float panels have them, whose bits these give.
constexpr int kTilePanels = 4;
constexpr int kTileRows = 6;

/// The values of a pair of columns as the products take them: [16 rows][2] bf16.
struct PairsF8 {
    static constexpr int64_t kBytes = codebook_pair_bytes(false);
    __m512i subnormals;

    explicit PairsF8(const float*) {
        // By the low five bits of a code, m / 512; its exponent's are 0.
        alignas(64) uint16_t words[32];
        for (int i = 0; i < 32; ++i) words[i] = static_cast<uint16_t>(float_bits(static_cast<float>(i % 8) / 512.0f) >> 16);
        subnormals = _mm512_load_si512(words);
    }

    SIMD_INLINE __m512i load(const uint8_t* p) const {
        const __m512i code = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        const __m512i fields = _mm512_and_si512(_mm512_slli_epi16(code, 4), _mm512_set1_epi16(0x7f0));
        const __m512i normal = _mm512_add_epi16(fields, _mm512_set1_epi16((127 - 7) << 7));
        const __mmask32 tiny = _mm512_testn_epi16_mask(code, _mm512_set1_epi16(0x78));
        const __m512i magnitude = _mm512_mask_permutexvar_epi16(normal, tiny, code, subnormals);
        // magnitude | (code << 8 & sign)
        const __m512i sign = _mm512_set1_epi16(static_cast<int16_t>(0x8000));
        return _mm512_ternarylogic_epi32(magnitude, _mm512_slli_epi16(code, 8), sign, 0xf8);
    }
};

struct PairsTable4 {
    static constexpr int64_t kBytes = codebook_pair_bytes(true);
    __m512i entries;

    explicit PairsTable4(const float* table) {
        // VPERMW looks at the low five bits of an index, of which the fifth belongs to the other nibble.
        alignas(64) uint16_t twice[32];
        for (int i = 0; i < 32; ++i) twice[i] = static_cast<uint16_t>(float_bits(table[i % 16]) >> 16);
        entries = _mm512_load_si512(twice);
    }

    SIMD_INLINE __m512i load(const uint8_t* p) const {
        const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        return _mm512_permutexvar_epi16(_mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12)), entries);
    }
};

template <class Pairs>
void decode_pairs(const uint8_t* codes, int64_t pairs, const float* table, const uint8_t* next, void* tile) {
    const Pairs source(table);
    uint8_t* out = static_cast<uint8_t*>(tile);
    for (int64_t p = 0; p < pairs; ++p) {
        __builtin_prefetch(next + p * Pairs::kBytes);
        _mm512_storeu_si512(out + p * 64, source.load(codes + p * Pairs::kBytes));
    }
}

/// float_tile of the same products, bit for bit.
template <class Pairs, int R, int C, bool Keep>
void codebook_tile(const Pairs& source, const CodebookPanels& weights, const FloatRows& rows, int64_t pairs, float* sums, int64_t stride,
                bool first, const DecodedPanels& decoded) {
    constexpr int64_t kAhead = 64 * Pairs::kBytes;
    __m512 sum[R][C];
    SIMD_UNROLL
    for (int r = 0; r < R; ++r) {
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) sum[r][c] = _mm512_setzero_ps();
    }
    const uint8_t* codes = weights.codes;
    const uint8_t* activations = rows.data;
    for (int64_t p = 0; p < pairs; ++p, codes += Pairs::kBytes, activations += 4) {
        __m512i w[R];
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            __builtin_prefetch(codes + r * weights.stride + kAhead);
            w[r] = source.load(codes + r * weights.stride);
            if constexpr (Keep) _mm512_storeu_si512(decoded.tile + r * decoded.stride + p * 64, w[r]);
        }
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            int32_t pair;
            std::memcpy(&pair, activations + c * rows.stride, sizeof pair);
            const __m512i a = _mm512_set1_epi32(pair);
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], (__m512bh)w[r], (__m512bh)a);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < R; ++r) {
        const __m512 scale = _mm512_loadu_ps(weights.scales + r * weights.scale_stride);
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            float* out = sums + c * stride + r * kPanelRows;
            const __m512 scaled = _mm512_mul_ps(sum[r][c], scale);
            _mm512_storeu_ps(out, first ? scaled : _mm512_add_ps(_mm512_loadu_ps(out), scaled));
        }
    }
}

template <class Pairs, int C, bool Keep>
void codebook_panels(const CodebookPanels& weights, const float* table, const FloatRows& rows, int64_t columns, float* sums,
                  int64_t stride, bool first, const DecodedPanels& decoded) {
    constexpr int kTogether = C <= 4 ? 4 : 2;
    const Pairs source(table);
    for (int panel = 0; panel < weights.panels;) {
        CodebookPanels at = weights;
        at.codes += panel * weights.stride;
        at.scales += panel * weights.scale_stride;
        const DecodedPanels to{decoded.tile + panel * decoded.stride, decoded.stride};
        float* out = sums + panel * kPanelRows;
        if (panel + kTogether <= weights.panels) {
            codebook_tile<Pairs, kTogether, C, Keep>(source, at, rows, columns / 2, out, stride, first, to);
            panel += kTogether;
        } else {
            codebook_tile<Pairs, 1, C, Keep>(source, at, rows, columns / 2, out, stride, first, to);
            ++panel;
        }
    }
}

template <class Pairs, int C = kMaxCodebookRows>
void multiply_codes(const CodebookPanels& weights, const float* table, const FloatRows& rows, int64_t num_rows, int64_t columns,
                    float* sums, int64_t stride, bool first, const DecodedPanels& decoded) {
    if constexpr (C > 1) {
        if (num_rows < C) {
            return multiply_codes<Pairs, C - 1>(weights, table, rows, num_rows, columns, sums, stride, first, decoded);
        }
    }
    if (decoded.tile != nullptr) return codebook_panels<Pairs, C, true>(weights, table, rows, columns, sums, stride, first, decoded);
    codebook_panels<Pairs, C, false>(weights, table, rows, columns, sums, stride, first, decoded);
}

/// The float tiles of one group after another, bit for bit, in one run: a call for each group would cost as much as a quarter of it.
template <int R, int C>
void group_tile(const FloatPanels& weights, const GroupCut& cut, const FloatRows& rows, int64_t columns, float* sums, int64_t stride,
                bool first) {
    __m512 total[R][C];
    SIMD_UNROLL
    for (int r = 0; r < R; ++r) {
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) total[r][c] = _mm512_loadu_ps(sums + c * stride + r * kPanelRows);
    }
    const uint8_t* packed = weights.data;
    const uint8_t* activations = rows.data;
    const float* scales = weights.scales;
    for (int64_t at = 0; at < columns; scales += cut.stride) {
        const int64_t end = cut.end(at, columns);
        __m512 sum[R][C];
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) sum[r][c] = _mm512_setzero_ps();
        }
        for (int64_t p = (end - at) / 2; p > 0; --p, packed += 64, activations += 4) {
            __m512i w[R];
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) w[r] = pinned(load_bytes(packed + r * weights.stride)).lanes;
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) {
                int32_t pair;
                std::memcpy(&pair, activations + c * rows.stride, sizeof pair);
                const __m512i a = _mm512_set1_epi32(pair);
                SIMD_UNROLL
                for (int r = 0; r < R; ++r) sum[r][c] = _mm512_dpbf16_ps(sum[r][c], (__m512bh)w[r], (__m512bh)a);
            }
        }
        const bool fresh = first && at == 0;
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            const __m512 scale = _mm512_loadu_ps(scales + r * weights.scale_stride);
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) {
                const __m512 scaled = _mm512_mul_ps(sum[r][c], scale);
                total[r][c] = fresh ? scaled : _mm512_add_ps(total[r][c], scaled);
            }
        }
        at = end;
    }
    SIMD_UNROLL
    for (int r = 0; r < R; ++r) {
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) _mm512_storeu_ps(sums + c * stride + r * kPanelRows, total[r][c]);
    }
}

template <int R>
void group_panels(const FloatPanels& weights, const GroupCut& cut, const FloatRows& rows, int64_t num_rows, int64_t columns,
                  float* sums, int64_t stride, bool first) {
    constexpr int kRows = kTileRows;
    int64_t row = 0;
    for (; row + kRows <= num_rows; row += kRows) {
        const FloatRows at{rows.data + row * rows.stride, rows.stride};
        group_tile<R, kRows>(weights, cut, at, columns, sums + row * stride, stride, first);
    }
    for (; row < num_rows; ++row) {
        const FloatRows at{rows.data + row * rows.stride, rows.stride};
        group_tile<R, 1>(weights, cut, at, columns, sums + row * stride, stride, first);
    }
}

void multiply_groups(const FloatPanels& weights, const GroupCut& cut, const FloatRows& rows, int64_t num_rows, int64_t columns,
                     float* sums, int64_t stride, bool first) {
    for (int panel = 0; panel < weights.panels;) {
        FloatPanels at = weights;
        at.data += panel * weights.stride;
        at.scales += panel * weights.scale_stride;
        float* out = sums + panel * kPanelRows;
        if (panel + kTilePanels <= weights.panels) {
            group_panels<kTilePanels>(at, cut, rows, num_rows, columns, out, stride, first);
            panel += kTilePanels;
        } else {
            group_panels<1>(at, cut, rows, num_rows, columns, out, stride, first);
            ++panel;
        }
    }
}

}  // namespace

const CodebookKernelTable codebook_kernels_avx512_bf16{
    true,
    multiply_groups,
    {decode_pairs<PairsF8>, decode_weights<CodesF8, true>, multiply_codes<PairsF8>},
    decoding<CodesU8, true>(),
    {decode_pairs<PairsTable4>, decode_weights<CodesTable4, true>, multiply_codes<PairsTable4>}};

}  // namespace octavo
