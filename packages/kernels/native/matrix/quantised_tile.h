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
            codes[r] = panels[r].codes + code_offset(P::kFormat, group);
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

    /// Fetches the memory of pairs in the order in which it lies, some way ahead of its use and spread evenly over the passes that
    /// use what is already here, so that memory is never idle.
    class Fetcher {
    public:
        V_INLINE Fetcher(const PackedPair& pair, int64_t groups, int64_t ahead, int64_t passes)
            : at_(pair.begin + ahead), end_(pair.end), next_(pair.next), group_bytes_((pair.end - pair.begin) / groups),
              line_cost_(64 * passes) {}
        /// To be called for every group of every pass.
        V_INLINE void step() {
            if (at_ >= end_ && next_ != nullptr) {
                at_ = next_ + (at_ - end_);
                next_ = nullptr;
            }
            for (owed_ += group_bytes_; owed_ > 0; owed_ -= line_cost_) {
                V::prefetch(at_);
                at_ += 64;
            }
        }

    private:
        const uint8_t* at_;
        const uint8_t* end_;
        const uint8_t* next_;
        int64_t group_bytes_;
        int64_t line_cost_;
        int64_t owed_ = 0;
    };

    /// R packed panels times C rows, groups [begin, end).
    template <int R, int C>
    static void stream_tile(const PanelView* panels, int64_t begin, int64_t end, const QuantisedRows& rows, float* sums,
                            int64_t stride, Fetcher& shared_fetcher) {
        Fetcher fetcher = shared_fetcher;
        Floats sum[R][C];
        load_sums(sums, stride, begin == 0, sum);
        for (int64_t g = begin; g < end; ++g) {
            fetcher.step();
            add_group(PackedGroup<P, R>(panels, g), rows, g, sum);
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
        stream_tile<V::kStreamPanels, C>(panels, begin, end, rows, sums, stride, fetcher);
    }

    static void stream(const PackedPair& pair, int64_t groups, const QuantisedRows& rows, int64_t num_rows, float* sums,
                       int64_t stride) {
        const int64_t num_tiles = (num_rows + V::kStreamRows - 1) / V::kStreamRows;
        const int64_t passes = num_tiles * (kPairPanels / V::kStreamPanels);
        // One pass reads the pair straight through; several take a stretch that the nearest cache holds in turn.
        const int64_t block = passes == 1 ? groups : V::kStreamGroups;
        const int64_t bytes = pair.end - pair.begin;
        const int64_t ahead = passes == 1 ? V::kPrefetchBytes : 2 * block * (bytes / groups);
        Fetcher fetcher(pair, groups, ahead < bytes ? ahead : bytes, passes);
        for (int64_t begin = 0; begin < groups; begin += block) {
            const int64_t end = begin + block < groups ? begin + block : groups;
            for (int panel = 0; panel < kPairPanels; panel += V::kStreamPanels) {
                int64_t row = 0;
                for (int64_t tiles_left = num_tiles; tiles_left > 0; --tiles_left) {
                    const int64_t count = (num_rows - row + tiles_left - 1) / tiles_left;
                    stream_rows<V::kStreamRows>(count, pair.panels + panel, begin, end, skip(rows, row),
                                                sums + row * stride + panel * kPanelRows, stride, fetcher);
                    row += count;
                }
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
                                               V::kTilePanels, V::kBlockGroups, V::kMaxStreamRows};
