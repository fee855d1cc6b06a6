// The products of quantised panels with rows, over Panel of quantised_panel.h; included after it.
//
// V::kRun<Bits>: how many quads `dot` may sum before its 16-bit lanes must be widened by `widen`; 0 where it sums in 32 bits.

/// Weights of R panels as they lie packed.
template <class P, int R>
struct PackedGroup {
    const uint8_t* codes[R];
    typename P::Meta meta[R];

    V_INLINE PackedGroup(const PanelView* panels, int64_t group) {
        V_UNROLL
        for (int r = 0; r < R; ++r) {
            codes[r] = panels[r].codes + group * P::kCodeBytes;
            P::load_meta(panels[r], group, meta[r]);
        }
    }
    template <int J>
    V_INLINE typename V::Bytes quad(int r) const {
        return P::template load_quad<J>(codes[r]);
    }
    V_INLINE typename V::Floats scale(int r, int h) const { return meta[r].scales[h]; }
    V_INLINE typename V::Floats minimum(int r, int h) const { return meta[r].minima[h]; }
};

/// Weights of R neighbouring panels unpacked.
template <class P, int R>
struct UnpackedGroup {
    const uint8_t* codes;
    const float* scales;
    const float* minima;
    int64_t groups;

    V_INLINE UnpackedGroup(const UnpackedPanels& weights, int first_panel, int64_t group)
        : codes(weights.codes + (first_panel * weights.groups + group) * kGroupCodes),
          scales(weights.scales + (first_panel * weights.groups + group) * P::kScales * kPanelRows),
          minima(weights.minima + (first_panel * weights.groups + group) * P::kMinima * kPanelRows),
          groups(weights.groups) {}
    template <int J>
    V_INLINE typename V::Bytes quad(int r) const {
        return V::pinned(V::load_bytes(codes + r * groups * kGroupCodes + 64 * J));
    }
    V_INLINE typename V::Floats scale(int r, int h) const {
        return V::load_f32(reinterpret_cast<const uint8_t*>(scales + (r * groups * P::kScales + h) * kPanelRows));
    }
    V_INLINE typename V::Floats minimum(int r, int h) const {
        return V::load_f32(reinterpret_cast<const uint8_t*>(minima + (r * groups * P::kMinima + h) * kPanelRows));
    }
};

template <FormatId Id>
struct Tiles {
    using P = Panel<Id>;
    using Floats = typename V::Floats;
    using Ints = typename V::Ints;
    static constexpr int kScales = P::kScales;
    static constexpr int kQuadsPerScale = P::kQuads / kScales;
    static constexpr int kRun = V::template kRun<P::kValueBits>;

    /// What an integer dot product starts from.
    static V_INLINE Ints start(const QuantisedRows& rows, int64_t group_of_row, int half) {
        if constexpr (P::kIntegerCorrection) return V::broadcast_int(rows.corrections[group_of_row * P::kCorrections + half]);
        return V::zero_ints();
    }

    template <int J, int R, int C, class Group>
    static V_INLINE void dot_quad(const Group& group, const QuantisedRows& rows, int64_t g, Ints (&dot)[R][C], Ints (&narrow)[R][C]) {
        typename V::Bytes w[R];
        V_UNROLL
        for (int r = 0; r < R; ++r) w[r] = group.template quad<J>(r);
        V_UNROLL
        for (int c = 0; c < C; ++c) {
            const typename V::Quad a = V::load_quad(rows.codes + (c * rows.stride + g) * kGroup + 4 * J);
            V_UNROLL
            for (int r = 0; r < R; ++r) {
                if constexpr (kRun == 0) {
                    dot[r][c] = V::template dot<P::kValueBits>(dot[r][c], w[r], a);
                } else {
                    constexpr int kPlace = J % kQuadsPerScale % kRun;
                    narrow[r][c] = V::template dot<P::kValueBits>(kPlace == 0 ? V::zero_ints() : narrow[r][c], w[r], a);
                    if constexpr (kPlace == kRun - 1 || J % kQuadsPerScale == kQuadsPerScale - 1) {
                        dot[r][c] = V::widen(dot[r][c], narrow[r][c]);
                    }
                }
            }
        }
    }

    template <int R, int C, int First, class Group, int... J>
    static V_INLINE void dot_quads(const Group& group, const QuantisedRows& rows, int64_t g, Ints (&dot)[R][C],
                                   std::integer_sequence<int, J...>) {
        Ints narrow[R][C];
        (dot_quad<First + J>(group, rows, g, dot, narrow), ...);
    }

    /// Adds group `g` of the rows, which is `group` of the weights.
    template <int R, int C, class Group>
    static V_INLINE void add_group(const Group& group, const QuantisedRows& rows, int64_t g, Floats (&sum)[R][C]) {
        const auto activation_scale = [&](int c) { return V::broadcast(rows.scales[c * rows.stride + g]); };
        if constexpr (kScales == 1) {
            Ints dot[R][C];
            V_UNROLL
            for (int c = 0; c < C; ++c) {
                const Ints begin = start(rows, c * rows.stride + g, 0);
                V_UNROLL
                for (int r = 0; r < R; ++r) dot[r][c] = begin;
            }
            dot_quads<R, C, 0>(group, rows, g, dot, std::make_integer_sequence<int, kQuadsPerScale>());
            V_UNROLL
            for (int r = 0; r < R; ++r) {
                const Floats scale = group.scale(r, 0);
                V_UNROLL
                for (int c = 0; c < C; ++c) {
                    sum[r][c] = V::fma(V::to_floats(dot[r][c]), V::mul(scale, activation_scale(c)), sum[r][c]);
                }
            }
        } else {
            Floats part[R][C];
            add_half<0>(group, rows, g, part);
            add_half<1>(group, rows, g, part);
            V_UNROLL
            for (int r = 0; r < R; ++r) {
                V_UNROLL
                for (int c = 0; c < C; ++c) sum[r][c] = V::fma(part[r][c], activation_scale(c), sum[r][c]);
            }
        }
        V_UNROLL
        for (int h = 0; h < P::kMinima; ++h) {
            V_UNROLL
            for (int r = 0; r < R; ++r) {
                const Floats minimum = group.minimum(r, h);
                V_UNROLL
                for (int c = 0; c < C; ++c) {
                    const int32_t correction = rows.corrections[(c * rows.stride + g) * P::kCorrections + h];
                    sum[r][c] = V::fma(minimum, V::broadcast(float_from_bits(static_cast<uint32_t>(correction))), sum[r][c]);
                }
            }
        }
    }

    template <int Half, int R, int C, class Group>
    static V_INLINE void add_half(const Group& group, const QuantisedRows& rows, int64_t g, Floats (&part)[R][C]) {
        Ints dot[R][C];
        V_UNROLL
        for (int c = 0; c < C; ++c) {
            const Ints begin = start(rows, c * rows.stride + g, Half);
            V_UNROLL
            for (int r = 0; r < R; ++r) dot[r][c] = begin;
        }
        dot_quads<R, C, Half * kQuadsPerScale>(group, rows, g, dot, std::make_integer_sequence<int, kQuadsPerScale>());
        V_UNROLL
        for (int r = 0; r < R; ++r) {
            const Floats scale = group.scale(r, Half);
            V_UNROLL
            for (int c = 0; c < C; ++c) {
                const Floats product = V::to_floats(dot[r][c]);
                part[r][c] = Half == 0 ? V::mul(product, scale) : V::fma(product, scale, part[r][c]);
            }
        }
    }

    template <int R, int C>
    static V_INLINE void load_sums(const float* sums, int64_t stride, bool first, Floats (&sum)[R][C]) {
        V_UNROLL
        for (int r = 0; r < R; ++r) {
            V_UNROLL
            for (int c = 0; c < C; ++c) {
                sum[r][c] = first ? V::broadcast(0.0f)
                                  : V::load_f32(reinterpret_cast<const uint8_t*>(sums + c * stride + r * kPanelRows));
            }
        }
    }

    template <int R, int C>
    static V_INLINE void store_sums(float* sums, int64_t stride, const Floats (&sum)[R][C]) {
        V_UNROLL
        for (int r = 0; r < R; ++r) {
            V_UNROLL
            for (int c = 0; c < C; ++c) V::store_f32(sums + c * stride + r * kPanelRows, sum[r][c]);
        }
    }

    static QuantisedRows skip(const QuantisedRows& rows, int64_t count) {
        const int64_t groups = count * rows.stride;
        return {rows.codes + groups * kGroup, rows.scales + groups, rows.corrections + groups * P::kCorrections, rows.stride};
    }

    /// R unpacked panels times C rows.
    template <int R, int C>
    static void tile(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, float* sums, int64_t stride,
                     bool first) {
        Floats sum[R][C];
        load_sums(sums, stride, first, sum);
        for (int64_t g = 0; g < weights.groups; ++g) add_group(UnpackedGroup<P, R>(weights, first_panel, g), rows, g, sum);
        store_sums(sums, stride, sum);
    }

    template <int R>
    static void multiply_panels(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, int64_t num_rows,
                                float* sums, int64_t stride, bool first) {
        sums += first_panel * kPanelRows;
        int64_t row = 0;
        for (; row + V::kTileRows <= num_rows; row += V::kTileRows) {
            tile<R, V::kTileRows>(weights, first_panel, skip(rows, row), sums + row * stride, stride, first);
        }
        for (; row < num_rows; ++row) tile<R, 1>(weights, first_panel, skip(rows, row), sums + row * stride, stride, first);
    }

    static void multiply(const UnpackedPanels& weights, const QuantisedRows& rows, int64_t num_rows, float* sums, int64_t stride,
                         bool first) {
        int panel = 0;
        for (; panel + V::kTilePanels <= weights.panels; panel += V::kTilePanels) {
            multiply_panels<V::kTilePanels>(weights, panel, rows, num_rows, sums, stride, first);
        }
        for (; panel < weights.panels; ++panel) multiply_panels<1>(weights, panel, rows, num_rows, sums, stride, first);
    }

    /// R packed panels times C rows, groups [begin, end). `Prefetch` where the weights come from memory: what lies
    /// kPrefetchBytes ahead, and beyond `end` what is read next: `next` points at the codes of each panel's successor.
    template <int R, int C, bool Prefetch>
    static void stream_tile(const PanelView* panels, const PanelView* next, int64_t begin, int64_t end, const QuantisedRows& rows,
                            float* sums) {
        constexpr int64_t kStride = R * kPanelRows;
        constexpr int64_t kAhead = V::kPrefetchBytes / P::kCodeBytes;
        constexpr int64_t kMetaLines = 4;
        Floats sum[R][C];
        load_sums(sums, kStride, begin == 0, sum);
        const auto fetch = [](const uint8_t* codes) {
            for (int64_t line = 0; line < P::kCodeBytes; line += 64) V::prefetch(codes + line);
        };
        int64_t g = begin;
        if constexpr (Prefetch) {
            for (; g < end - kAhead; ++g) {
                const PackedGroup<P, R> group(panels, g);
                V_UNROLL
                for (int r = 0; r < R; ++r) fetch(group.codes[r] + kAhead * P::kCodeBytes);
                add_group(group, rows, g, sum);
            }
        }
        for (int64_t ahead = 0; g < end; ++g, ++ahead) {
            const PackedGroup<P, R> group(panels, g);
            if constexpr (Prefetch) {
                V_UNROLL
                for (int r = 0; r < R; ++r) {
                    fetch(next[r].codes + ahead * P::kCodeBytes);
                    if (ahead < kMetaLines) V::prefetch(next[r].meta + ahead * 64);
                }
            }
            add_group(group, rows, g, sum);
        }
        store_sums(sums, kStride, sum);
    }

    template <int C>
    static void stream_rows(int64_t count, const PanelView* panels, const PanelView* next, int64_t begin, int64_t end,
                            const QuantisedRows& rows, float* sums, bool from_memory) {
        if constexpr (C > 1) {
            if (count < C) return stream_rows<C - 1>(count, panels, next, begin, end, rows, sums, from_memory);
        }
        if (from_memory) return stream_tile<V::kStreamPanels, C, true>(panels, next, begin, end, rows, sums);
        stream_tile<V::kStreamPanels, C, false>(panels, next, begin, end, rows, sums);
    }

    static void stream(const PanelView* panels, const PanelView* next, int64_t groups, const QuantisedRows& rows, int64_t num_rows,
                       float* sums) {
        const int64_t num_tiles = (num_rows + V::kStreamRows - 1) / V::kStreamRows;
        // One tile of rows reads the panels straight through; several take a stretch that the nearest cache holds in turn.
        const int64_t block = num_tiles == 1 ? groups : V::kStreamGroups;
        for (int64_t begin = 0; begin < groups; begin += block) {
            const int64_t end = begin + block < groups ? begin + block : groups;
            PanelView after[V::kStreamPanels];
            for (int r = 0; r < V::kStreamPanels; ++r) {
                after[r] = next[r];
                if (end < groups) after[r].codes = panels[r].codes + end * P::kCodeBytes;
            }
            int64_t row = 0;
            for (int64_t tiles_left = num_tiles; tiles_left > 0; --tiles_left) {
                const int64_t count = (num_rows - row + tiles_left - 1) / tiles_left;
                stream_rows<V::kStreamRows>(count, panels, after, begin, end, skip(rows, row),
                                            sums + row * V::kStreamPanels * kPanelRows, row == 0);
                row += count;
            }
        }
    }

    static constexpr QuantisedKernels kernels() {
        if constexpr (V::kMaxStreamRows > 0) return {P::quantise, P::unpack, multiply, stream};
        return {P::quantise, P::unpack, multiply, nullptr};
    }
};

template <class>
struct KernelsOfFormats;

template <int... Id>
struct KernelsOfFormats<std::integer_sequence<int, Id...>> {
    static constexpr QuantisedKernels kAll[] = {Tiles<static_cast<FormatId>(Id)>::kernels()...};
};

constexpr QuantisedKernelTable kQuantisedTable{KernelsOfFormats<std::make_integer_sequence<int, kNumFormats>>::kAll,
                                               V::kTilePanels, V::kBlockGroups, V::kStreamPanels, V::kMaxStreamRows};
