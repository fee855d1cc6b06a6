#include <algorithm>

#include "../../simd/avx512.h"

#include "quantised_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 2;
    static constexpr int kRows = 4;
    static constexpr int kRowsByRow = 6;
    static constexpr int kBlockGroups = 16;
    static constexpr int kStreamPanels = 2;
    static constexpr int kStreamRows = 4;
    static constexpr int kStreamGroups = 16;
    static constexpr int kMaxStreamRows = 48;
    static constexpr int kPrefetchBytes = 9216;
};

/// Rows of activations of one tile.
constexpr int kTileRows = 16;

/// LDTILECFG's operand (Intel's manual, volume 1, chapter 18): palette 1 has eight tiles of up to sixteen rows of 64 bytes.
struct alignas(64) TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

/// Products by tiles of AMX-INT8, for formats with one scale in a group: what an unpacked group holds is a tile as it is, eight rows of
/// [16 outputs][4 columns]. Integer sums are exact and the arithmetic on floats is that of Tiles, so the bits are the same.
template <int Id>
struct MatrixTiles {
    using P = Panel<Id>;
    static constexpr int kMinima = P::kMinima;
    /// Unpacked codes are signed where their zero is known: they need no correction then.
    static constexpr bool kSigned = P::kIntegerCorrection;
    /// Groups whose sums stay in registers between loading and storing them.
    static constexpr int kRound = 4;
    static constexpr int kTileInts = kTileRows * kPanelRows;

    static void unpack(const PanelView& panel, int64_t first, int64_t count, uint8_t* codes, float* scales, float* minima) {
        P::unpack(panel, first, count, codes, scales, minima);
        if constexpr (kSigned) {
            const __m512i zero = _mm512_set1_epi8(static_cast<char>(P::kFormat.zero));
            for (uint8_t* at = codes; at < codes + count * kGroupCodes; at += 64) {
                _mm512_store_si512(at, _mm512_sub_epi8(_mm512_load_si512(at), zero));
            }
        }
    }

    /// Tiles 0 to 3 hold sums, 4 and 5 activations, 6 and 7 weights.
    static void configure(int rows) {
        TileConfig config;
        for (int tile = 0; tile < 8; ++tile) {
            config.row_bytes[tile] = tile == 4 || tile == 5 ? kGroup : 64;
            config.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : kGroup / 4);
        }
        // GCC believes that the instruction reads eight bytes.
        asm volatile("" : : "r"(&config) : "memory");
        _tile_loadconfig(&config);
    }

    /// R panels and one tile of rows, from the first group on.
    template <int R>
    struct Operands {
        const UnpackedPanels& weights;
        int panel;
        const QuantisedRows& rows;

        // The intrinsics want their tiles written out.
#define OCTAVO_TILE_PRODUCT(sum, activations, weights, codes, ints) \
    do {                                                            \
        _tile_loadd(weights, codes, 64);                            \
        _tile_zero(sum);                                            \
        if constexpr (kSigned) {                                    \
            _tile_dpbssd(sum, activations, weights);                \
        } else {                                                    \
            _tile_dpbsud(sum, activations, weights);                \
        }                                                           \
        _tile_stored(sum, ints, 4 * kPanelRows);                    \
    } while (false)

        /// Integer sums of one group, [panel][row][16]. Neighbouring groups take tiles in turn.
        template <bool Odd>
        SIMD_INLINE void multiply(int64_t group, int32_t* ints) const {
            const int8_t* a = rows.codes + group * kGroup;
            const uint8_t* w = weights.codes + panel * weights.panel_bytes + group * weights.group_bytes;
            const uint8_t* second = w + weights.panel_bytes;
            if constexpr (Odd) {
                _tile_loadd(5, a, rows.stride * kGroup);
                OCTAVO_TILE_PRODUCT(2, 5, 6, w, ints);
                if constexpr (R == 2) OCTAVO_TILE_PRODUCT(3, 5, 7, second, ints + kTileInts);
            } else {
                _tile_loadd(4, a, rows.stride * kGroup);
                OCTAVO_TILE_PRODUCT(0, 4, 6, w, ints);
                if constexpr (R == 2) OCTAVO_TILE_PRODUCT(1, 4, 7, second, ints + kTileInts);
            }
        }
#undef OCTAVO_TILE_PRODUCT
    };

    /// Adds G groups to the sums of `num_rows` rows: all integer sums first, then all of them scaled.
    template <int R, int G>
    static SIMD_INLINE void add_groups(const Operands<R>& operands, int64_t group, int num_rows, float* sums, int64_t stride, bool first) {
        alignas(64) int32_t ints[G * kPairPanels * kTileInts];
        SIMD_UNROLL
        for (int g = 0; g < G; g += 2) {
            operands.template multiply<false>(group + g, ints + g * kPairPanels * kTileInts);
            if constexpr (G > 1) operands.template multiply<true>(group + g + 1, ints + (g + 1) * kPairPanels * kTileInts);
        }
        __m512 scales[R][G];
        __m512 minima[R][G];
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            const int64_t at = (operands.panel + r) * operands.weights.groups + group;
            SIMD_UNROLL
            for (int g = 0; g < G; ++g) {
                scales[r][g] = _mm512_loadu_ps(operands.weights.scales + (at + g) * kPanelRows);
                if constexpr (kMinima > 0) minima[r][g] = _mm512_loadu_ps(operands.weights.minima + (at + g) * kPanelRows);
            }
        }
        for (int c = 0; c < num_rows; ++c) {
            const int64_t in_row = c * operands.rows.stride + group;
            float* out = sums + c * stride;
            __m512 sum[R];
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) sum[r] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(out + r * kPanelRows);
            SIMD_UNROLL
            for (int g = 0; g < G; ++g) {
                const __m512 activation_scale = _mm512_set1_ps(operands.rows.scales[in_row + g]);
                SIMD_UNROLL
                for (int r = 0; r < R; ++r) {
                    const int32_t* dot = ints + ((g * kPairPanels + r) * kTileRows + c) * kPanelRows;
                    const __m512 scale = _mm512_mul_ps(scales[r][g], activation_scale);
                    sum[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dot)), scale, sum[r]);
                    if constexpr (kMinima > 0) {
                        const int32_t correction = operands.rows.corrections[(in_row + g) * P::kCorrections];
                        const __m512 shift = _mm512_set1_ps(float_from_bits(static_cast<uint32_t>(correction)));
                        sum[r] = _mm512_fmadd_ps(minima[r][g], shift, sum[r]);
                    }
                }
            }
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) _mm512_storeu_ps(out + r * kPanelRows, sum[r]);
        }
    }

    /// Adds `count` groups that share an activation scale, whose integer sums a tile holds together.
    template <int R>
    static SIMD_INLINE void add_shared(const Operands<R>& operands, int64_t group, int64_t count, int num_rows, float* sums, int64_t stride,
                                       bool first) {
        alignas(64) int32_t ints[kPairPanels * kTileInts];
        const UnpackedPanels& weights = operands.weights;
        _tile_zero(0);
        _tile_zero(1);
        for (int64_t g = group; g < group + count; ++g) {
            const uint8_t* w = weights.codes + operands.panel * weights.panel_bytes + g * weights.group_bytes;
            _tile_loadd(4, operands.rows.codes + g * kGroup, operands.rows.stride * kGroup);
            _tile_loadd(6, w, 64);
            _tile_dpbssd(0, 4, 6);
            if constexpr (R == 2) {
                _tile_loadd(7, w + weights.panel_bytes, 64);
                _tile_dpbssd(1, 4, 7);
            }
        }
        _tile_stored(0, ints, 4 * kPanelRows);
        if constexpr (R == 2) _tile_stored(1, ints + kTileInts, 4 * kPanelRows);
        for (int c = 0; c < num_rows; ++c) {
            const __m512 scale = _mm512_set1_ps(operands.rows.scales[c * operands.rows.stride + group]);
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) {
                float* out = sums + c * stride + r * kPanelRows;
                const __m512 before = first ? _mm512_setzero_ps() : _mm512_loadu_ps(out);
                const __m512i dot = _mm512_load_si512(ints + r * kTileInts + c * kPanelRows);
                _mm512_storeu_ps(out, _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, before));
            }
        }
    }

    /// R panels times one tile of rows.
    template <int R>
    static void multiply_tile(const UnpackedPanels& weights, int panel, const QuantisedRows& rows, int num_rows, float* sums,
                              int64_t stride, bool first) {
        const Operands<R> operands{weights, panel, rows};
        int64_t group = 0;
        if constexpr (P::kWidth > 1) {
            for (; group < weights.groups; group += P::kWidth) {
                const int64_t count = std::min(P::kWidth, weights.groups - group);
                add_shared<R>(operands, group, count, num_rows, sums, stride, first && group == 0);
            }
            return;
        }
        for (; group + kRound <= weights.groups; group += kRound) {
            add_groups<R, kRound>(operands, group, num_rows, sums, stride, first && group == 0);
        }
        for (; group < weights.groups; ++group) add_groups<R, 1>(operands, group, num_rows, sums, stride, first && group == 0);
    }

    static void multiply_rows(const UnpackedPanels& weights, const QuantisedRows& rows, int num_rows, float* sums, int64_t stride,
                              bool first) {
        int panel = 0;
        for (; panel + kPairPanels <= weights.panels; panel += kPairPanels) {
            multiply_tile<kPairPanels>(weights, panel, rows, num_rows, sums + panel * kPanelRows, stride, first);
        }
        if (panel < weights.panels) multiply_tile<1>(weights, panel, rows, num_rows, sums + panel * kPanelRows, stride, first);
    }

    static void multiply(const UnpackedPanels& weights, const QuantisedRows& rows, int64_t num_rows, float* sums, int64_t stride,
                         bool first) {
        const auto rows_from = [&](int64_t row) { return Tiles<Tiling, Id>::skip(rows, row); };
        int64_t row = 0;
        if (num_rows >= kTileRows) {
            configure(kTileRows);
            for (; row + kTileRows <= num_rows; row += kTileRows) {
                multiply_rows(weights, rows_from(row), kTileRows, sums + row * stride, stride, first);
            }
        }
        if (row < num_rows) {
            const int rest = static_cast<int>(num_rows - row);
            configure(rest);
            multiply_rows(weights, rows_from(row), rest, sums + row * stride, stride, first);
        }
        _tile_release();
    }

    static constexpr QuantisedKernels kernels() {
        const QuantisedKernels vectors = Tiles<Tiling, Id>::kernels();
        if constexpr (P::kScales > 1) return vectors;
        else return {vectors.quantise, unpack, multiply, vectors.stream, vectors.scale, false};
    }
};

template <class Ids>
struct MatrixKernels;

template <int... Id>
struct MatrixKernels<std::integer_sequence<int, Id...>> {
    static constexpr QuantisedKernels kAll[] = {MatrixTiles<Id>::kernels()...};
};

}  // namespace

const QuantisedKernelTable quantised_kernels_avx512_amx = {
    MatrixKernels<std::make_integer_sequence<int, kNumFormats>>::kAll, Tiling::kPanels, Tiling::kBlockGroups, Tiling::kStreamRows,
    Tiling::kMaxStreamRows};

}  // namespace octavo
