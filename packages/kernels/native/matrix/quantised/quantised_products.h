#pragma once
#include <climits>

#include "quantised_groups.h"

// The products of quantised panels with rows. An instruction set's source file includes its vocabulary, then this, and gives the
// sizes of tiles.
namespace octavo {
namespace {

template <class Tiling, int Id>
struct Tiles {
    using P = Panel<Id>;
    using Floats = V::Floats;
    using Ints = V::Ints;
    static constexpr int kScales = P::kScales;
    static constexpr int kQuadsPerScale = P::kQuads / kScales;
    static constexpr int kRun = octavo::kRun<P::kValueBits>;
    /// Scales belong to whole rows, and not to groups.
    static constexpr bool kByRow = P::kScaling == Scaling::row;
    static constexpr int kRows = kByRow ? Tiling::kRowsByRow : Tiling::kRows;
    /// Row tiles from which on `stream` unpacks first, which pays where the planes of bits take long to put together.
    static constexpr int kUnpackTiles = kScales == 2 ? 3 : INT_MAX;

    /// What an integer dot product starts from.
    static SIMD_INLINE Ints start(const QuantisedRows& rows, int64_t group_of_row, int half) {
        if constexpr (P::kIntegerCorrection) return V::broadcast_int(rows.corrections[group_of_row * P::kCorrections + half]);
        return V::broadcast_int(0);
    }

    template <int J, int R, int C, class Group>
    static SIMD_INLINE void dot_quad(const Group& group, const QuantisedRows& rows, int64_t g, Ints (&dot)[R][C], Ints (&narrow)[R][C]) {
        V::Bytes w[R];
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) w[r] = group.template quad<J>(r);
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            const V::Quad a = V::load_quad(rows.codes + (c * rows.stride + g) * kGroup + 4 * J);
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) {
                if constexpr (kRun == 0) {
                    dot[r][c] = V::dot<P::kValueBits>(dot[r][c], w[r], a);
                } else {
                    constexpr int kPlace = J % kQuadsPerScale % kRun;
                    narrow[r][c] = V::dot<P::kValueBits>(kPlace == 0 ? V::broadcast_int(0) : narrow[r][c], w[r], a);
                    if constexpr (kPlace == kRun - 1 || J % kQuadsPerScale == kQuadsPerScale - 1) {
                        dot[r][c] = V::widen(dot[r][c], narrow[r][c]);
                    }
                }
            }
        }
    }

    template <int R, int C, int First, class Group, int... J>
    static SIMD_INLINE void dot_quads(const Group& group, const QuantisedRows& rows, int64_t g, Ints (&dot)[R][C],
                                   std::integer_sequence<int, J...>) {
        Ints narrow[R][C];
        (dot_quad<First + J>(group, rows, g, dot, narrow), ...);
    }

    /// Adds groups [begin, end) of the rows; `group_at(g)` are the weights of one.
    template <int R, int C, class GroupAt>
    static SIMD_INLINE void add_groups(int64_t begin, int64_t end, const QuantisedRows& rows, Floats (&sum)[R][C], const GroupAt& group_at) {
        if constexpr (!kByRow) {
            for (int64_t g = begin; g < end; ++g) add_group(group_at(g), rows, g, sum);
            return;
        } else {
            for (int64_t g = begin; g < end;) {
                const int64_t first = g;
                const int64_t last = first + P::kWidth < end ? first + P::kWidth : end;
                Ints dot[R][C];
                SIMD_UNROLL
                for (int c = 0; c < C; ++c) {
                    const Ints start_at = start(rows, c * rows.stride + first, 0);
                    SIMD_UNROLL
                    for (int r = 0; r < R; ++r) dot[r][c] = start_at;
                }
                for (; g < last; ++g) dot_quads<R, C, 0>(group_at(g), rows, g, dot, std::make_integer_sequence<int, P::kQuads>());
                SIMD_UNROLL
                for (int c = 0; c < C; ++c) {
                    const Floats scale = V::broadcast(rows.scales[c * rows.stride + first]);
                    SIMD_UNROLL
                    for (int r = 0; r < R; ++r) sum[r][c] = V::fma(V::to_floats(dot[r][c]), scale, sum[r][c]);
                }
            }
        }
    }

    /// Adds group `g` of the rows.
    template <int R, int C, class Group>
    static SIMD_INLINE void add_group(const Group& group, const QuantisedRows& rows, int64_t g, Floats (&sum)[R][C]) {
        const auto activation_scale = [&](int c) { return V::broadcast(rows.scales[c * rows.stride + g]); };
        if constexpr (kScales == 1) {
            Ints dot[R][C];
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) {
                const Ints begin = start(rows, c * rows.stride + g, 0);
                SIMD_UNROLL
                for (int r = 0; r < R; ++r) dot[r][c] = begin;
            }
            dot_quads<R, C, 0>(group, rows, g, dot, std::make_integer_sequence<int, kQuadsPerScale>());
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) {
                const Floats scale = group.scale(r, 0);
                SIMD_UNROLL
                for (int c = 0; c < C; ++c) {
                    sum[r][c] = V::fma(V::to_floats(dot[r][c]), V::mul(scale, activation_scale(c)), sum[r][c]);
                }
            }
        } else {
            Floats part[R][C];
            add_half<0>(group, rows, g, part);
            add_half<1>(group, rows, g, part);
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) {
                SIMD_UNROLL
                for (int c = 0; c < C; ++c) sum[r][c] = V::fma(part[r][c], activation_scale(c), sum[r][c]);
            }
        }
        SIMD_UNROLL
        for (int h = 0; h < P::kMinima; ++h) {
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) {
                const Floats minimum = group.minimum(r, h);
                SIMD_UNROLL
                for (int c = 0; c < C; ++c) {
                    const int32_t correction = rows.corrections[(c * rows.stride + g) * P::kCorrections + h];
                    sum[r][c] = V::fma(minimum, V::broadcast(float_from_bits(static_cast<uint32_t>(correction))), sum[r][c]);
                }
            }
        }
    }

    template <int Half, int R, int C, class Group>
    static SIMD_INLINE void add_half(const Group& group, const QuantisedRows& rows, int64_t g, Floats (&part)[R][C]) {
        Ints dot[R][C];
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            const Ints begin = start(rows, c * rows.stride + g, Half);
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) dot[r][c] = begin;
        }
        dot_quads<R, C, Half * kQuadsPerScale>(group, rows, g, dot, std::make_integer_sequence<int, kQuadsPerScale>());
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            const Floats scale = group.scale(r, Half);
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) {
                const Floats product = V::to_floats(dot[r][c]);
                part[r][c] = Half == 0 ? V::mul(product, scale) : V::fma(product, scale, part[r][c]);
            }
        }
    }

    template <int R, int C>
    static SIMD_INLINE void load_sums(const float* sums, int64_t stride, bool first, Floats (&sum)[R][C]) {
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) {
                sum[r][c] = first ? V::broadcast(0.0f)
                                  : V::load_f32(reinterpret_cast<const uint8_t*>(sums + c * stride + r * kPanelRows));
            }
        }
    }

    template <int R, int C>
    static SIMD_INLINE void store_sums(float* sums, int64_t stride, const Floats (&sum)[R][C]) {
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) V::store_f32(sums + c * stride + r * kPanelRows, sum[r][c]);
        }
    }

    static QuantisedRows from_group(const QuantisedRows& rows, int64_t group) {
        return {rows.codes + group * kGroup, rows.scales + group, rows.corrections + group * P::kCorrections, rows.stride};
    }
    static QuantisedRows skip(const QuantisedRows& rows, int64_t count) { return from_group(rows, count * rows.stride); }

    /// R unpacked panels times C rows. `fetch` is called for every group.
    template <int R, int C, class Fetch>
    static SIMD_INLINE void tile(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, float* sums, int64_t stride,
                              bool first, const Fetch& fetch) {
        Floats sum[R][C];
        load_sums(sums, stride, first, sum);
        add_groups(0, weights.groups, rows, sum, [&](int64_t g) {
            fetch();
            return UnpackedGroup<P, R>(weights, first_panel, g);
        });
        store_sums(sums, stride, sum);
    }

    template <int R, int C>
    static void tile(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, float* sums, int64_t stride,
                     bool first) {
        tile<R, C>(weights, first_panel, rows, sums, stride, first, [] {});
    }

    template <int R>
    static void multiply_panels(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, int64_t num_rows,
                                float* sums, int64_t stride, bool first) {
        sums += first_panel * kPanelRows;
        int64_t row = 0;
        if constexpr (kByRow) {
            // What lies behind is multiplied next.
            const int64_t num_tiles = (num_rows + kRows - 1) / kRows;
            const uint8_t* end = weights.codes + weights.groups * weights.group_bytes;
            Fetcher fetcher({{}, end, end + weights.groups * weights.group_bytes, nullptr}, weights.groups, 0, num_tiles);
            for (int64_t left = num_tiles; left > 0; --left) {
                const int64_t count = (num_rows - row + left - 1) / left;
                some_rows<R, kRows>(count, weights, first_panel, skip(rows, row), sums + row * stride, stride, first, fetcher);
                row += count;
            }
            return;
        }
        for (; row + kRows <= num_rows; row += kRows) {
            tile<R, kRows>(weights, first_panel, skip(rows, row), sums + row * stride, stride, first);
        }
        for (; row < num_rows; ++row) tile<R, 1>(weights, first_panel, skip(rows, row), sums + row * stride, stride, first);
    }

    static void multiply(const UnpackedPanels& weights, const QuantisedRows& rows, int64_t num_rows, float* sums, int64_t stride,
                         bool first) {
        int panel = 0;
        for (; panel + Tiling::kPanels <= weights.panels; panel += Tiling::kPanels) {
            multiply_panels<Tiling::kPanels>(weights, panel, rows, num_rows, sums, stride, first);
        }
        for (; panel < weights.panels; ++panel) multiply_panels<1>(weights, panel, rows, num_rows, sums, stride, first);
    }

    /// Fetches the memory of pairs in the order in which it lies, some way ahead of its use and spread evenly over the passes that
    /// use what is already here, so that memory is never idle. Every step fetches equally many lines, some of them twice, since a
    /// branch that goes now this way and now that costs more.
    class Fetcher {
    public:
        SIMD_INLINE Fetcher(const PackedPair& pair, int64_t groups, int64_t ahead, int64_t passes)
            : at_(pair.begin + ahead), end_(pair.end), next_(pair.next),
              step_bytes_(((pair.end - pair.begin) / groups + passes - 1) / passes), step_lines_((step_bytes_ + 63) / 64) {}
        /// To be called for every group of every pass.
        SIMD_INLINE void step() {
            if (at_ >= end_ && next_ != nullptr) {
                at_ = next_ + (at_ - end_);
                next_ = nullptr;
            }
            const uint8_t* line = at_;
            for (int64_t lines_left = step_lines_; lines_left > 0; --lines_left, line += 64) V::prefetch(line);
            at_ += step_bytes_;
        }

    private:
        const uint8_t* at_;
        const uint8_t* end_;
        const uint8_t* next_;
        int64_t step_bytes_;
        int64_t step_lines_;
    };

    /// R packed panels times C rows, groups [begin, end) of the weights, from the first on of the rows.
    template <int R, int C>
    static void stream_tile(const PanelView* panels, int64_t begin, int64_t end, const QuantisedRows& rows, float* sums,
                            int64_t stride, Fetcher& shared_fetcher) {
        Fetcher fetcher = shared_fetcher;
        Floats sum[R][C];
        load_sums(sums, stride, begin == 0, sum);
        const int64_t groups = end - begin;
        if constexpr (!kByRow) {
            // Spelled out: through add_groups, GCC makes it 4 % slower for one row.
            for (int64_t g = 0; g < groups; ++g) {
                fetcher.step();
                add_group(PackedGroup<P, R>(panels, begin + g), rows, g, sum);
            }
        } else {
            add_groups(0, groups, rows, sum, [&](int64_t g) {
                fetcher.step();
                return PackedGroup<P, R>(panels, begin + g);
            });
        }
        store_sums(sums, stride, sum);
        shared_fetcher = fetcher;
    }

    template <int C>
    static void stream_rows(int64_t count, const PanelView* panels, int64_t begin, int64_t end, const QuantisedRows& rows, float* sums,
                            int64_t stride, Fetcher& fetcher) {
        if constexpr (C > 1) {
            if (count < C) return stream_rows<C - 1>(count, panels, begin, end, rows, sums, stride, fetcher);
        }
        stream_tile<Tiling::kStreamPanels, C>(panels, begin, end, rows, sums, stride, fetcher);
    }

    /// At most C rows.
    template <int R, int C>
    static void some_rows(int64_t count, const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, float* sums,
                          int64_t stride, bool first, Fetcher& shared_fetcher) {
        if constexpr (C > 1) {
            if (count < C) return some_rows<R, C - 1>(count, weights, first_panel, rows, sums, stride, first, shared_fetcher);
        }
        Fetcher fetcher = shared_fetcher;
        tile<R, C>(weights, first_panel, rows, sums, stride, first, [&] { fetcher.step(); });
        shared_fetcher = fetcher;
    }

    /// One tile of rows.
    static void stream_whole(const PackedPair& pair, int64_t groups, const QuantisedRows& rows, int64_t num_rows, float* sums,
                             int64_t stride) {
        constexpr int64_t kPasses = kPairPanels / Tiling::kStreamPanels;
        // One pass reads the pair from end to end; two passes take turns on a stretch that fits the first-level cache.
        const int64_t block = kPasses == 1 ? groups : Tiling::kStreamGroups;
        const int64_t bytes = pair.end - pair.begin;
        const int64_t ahead = kPasses == 1 ? Tiling::kPrefetchBytes : 2 * block * (bytes / groups);
        Fetcher fetcher(pair, groups, ahead < bytes ? ahead : bytes, kPasses);
        for (int64_t begin = 0; begin < groups; begin += block) {
            const int64_t end = begin + block < groups ? begin + block : groups;
            for (int panel = 0; panel < kPairPanels; panel += Tiling::kStreamPanels) {
                stream_rows<Tiling::kStreamRows>(num_rows, pair.panels + panel, begin, end, from_group(rows, begin),
                                            sums + panel * kPanelRows, stride, fetcher);
            }
        }
    }

    static_assert(Tiling::kMaxStreamRows <= Tiling::kStreamRows || Tiling::kStreamPanels == kPairPanels, "several tiles of rows take pairs whole");

    /// Several tiles of rows, block of groups by block of groups.
    static void stream_blocks(const PackedPair& pair, int64_t groups, const QuantisedRows& all_rows, int64_t num_rows, float* sums,
                              int64_t stride) {
        alignas(64) uint8_t codes[kPairPanels * Tiling::kBlockGroups * kGroupCodes];
        alignas(64) float scales[kPairPanels * Tiling::kBlockGroups * kScales * kPanelRows];
        alignas(64) float minima[kPairPanels * Tiling::kBlockGroups * (P::kMinima > 0 ? P::kMinima : 1) * kPanelRows];
        const int64_t num_tiles = (num_rows + Tiling::kStreamRows - 1) / Tiling::kStreamRows;
        const int64_t bytes = pair.end - pair.begin;
        const int64_t ahead = 2 * Tiling::kBlockGroups * (bytes / groups);
        Fetcher fetcher(pair, groups, ahead < bytes ? ahead : bytes, num_tiles);
        for (int64_t begin = 0; begin < groups; begin += Tiling::kBlockGroups) {
            const int64_t count = groups - begin < Tiling::kBlockGroups ? groups - begin : Tiling::kBlockGroups;
            const UnpackedPanels weights = UnpackedPanels::of(codes, scales, minima, kPairPanels, count);
            if (num_tiles >= kUnpackTiles) {
                for (int p = 0; p < kPairPanels; ++p) {
                    for (int64_t g = 0; g < count; ++g) {
                        const int64_t at = p * count + g;
                        P::unpack_group(pair.panels[p], begin + g, codes + at * kGroupCodes, scales + at * kScales * kPanelRows,
                                        minima + at * P::kMinima * kPanelRows);
                    }
                }
            }
            QuantisedRows block = from_group(all_rows, begin * num_rows);
            block.stride = count;
            int64_t row = 0;
            for (int64_t tiles_left = num_tiles; tiles_left > 0; --tiles_left) {
                const int64_t tile_rows = (num_rows - row + tiles_left - 1) / tiles_left;
                const QuantisedRows rows = skip(block, row);
                if (num_tiles >= kUnpackTiles) {
                    some_rows<kPairPanels, Tiling::kStreamRows>(tile_rows, weights, 0, rows, sums + row * stride, stride, begin == 0, fetcher);
                } else {
                    stream_rows<Tiling::kStreamRows>(tile_rows, pair.panels, begin, begin + count, rows, sums + row * stride, stride,
                                                fetcher);
                }
                row += tile_rows;
            }
        }
    }

    static void stream(const PackedPair& pair, int64_t groups, const QuantisedRows& rows, int64_t num_rows, float* sums,
                       int64_t stride) {
        if constexpr (Tiling::kMaxStreamRows > Tiling::kStreamRows) {
            if (num_rows > Tiling::kStreamRows) return stream_blocks(pair, groups, rows, num_rows, sums, stride);
        }
        stream_whole(pair, groups, rows, num_rows, sums, stride);
    }

    static void scale(const uint8_t* scales, int64_t num_rows, float* sums, int64_t stride) {
        const Floats factors = V::load_f32(scales);
        for (int64_t row = 0; row < num_rows; ++row, sums += stride) {
            V::store_f32(sums, V::mul(V::load_f32(reinterpret_cast<const uint8_t*>(sums)), factors));
        }
    }

    static constexpr QuantisedKernels kernels() {
        constexpr bool kInPlace = kByRow && !kCentredBytes;
        if constexpr (Tiling::kMaxStreamRows > 0) return {P::quantise, P::unpack, multiply, stream, kByRow ? scale : nullptr, kInPlace};
        return {P::quantise, P::unpack, multiply, nullptr, kByRow ? scale : nullptr, kInPlace};
    }
};

template <class Tiling, class Ids>
struct KernelsOfFormats;

template <class Tiling, int... Id>
struct KernelsOfFormats<Tiling, std::integer_sequence<int, Id...>> {
    static constexpr QuantisedKernels kAll[] = {Tiles<Tiling, Id>::kernels()...};
};

template <class Tiling>
constexpr QuantisedKernelTable make_quantised_kernels() {
    return {KernelsOfFormats<Tiling, std::make_integer_sequence<int, kNumFormats>>::kAll, Tiling::kPanels, Tiling::kBlockGroups,
            Tiling::kMaxStreamRows > 0 ? Tiling::kStreamRows : 0, Tiling::kMaxStreamRows};
}

}  // namespace
}  // namespace octavo
