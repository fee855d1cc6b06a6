// The quantised kernels, written once over a vector type `V` of 16 lanes. An instruction set's source file includes this inside an
// anonymous namespace after defining V, so that nothing compiled for it can be linked into generic code.
//
// V: Bytes (64 of them), Ints (16 x int32), Floats (16 x f32), Quad (4 activations repeated 16 times), and the functions used below.
// V::kCentredBytes: 8-bit codes are dotted as signed u - 128, so that their group correction is not needed.

template <FormatId Id>
struct Panel {
    static constexpr Format kFormat = kFormats[static_cast<int>(Id)];
    static constexpr int kBits = kFormat.bits;
    static constexpr Scaling kScaling = kFormat.scaling;
    static constexpr Correction kCorrection = correction_of(kScaling);
    static constexpr int kScales = scales_per_group(kCorrection);
    static constexpr int kCorrections = corrections_per_group(kCorrection);
    static constexpr int kQuads = 8;
    static constexpr int kQuadsPerScale = kQuads / kScales;
    static constexpr bool kCentred = V::kCentredBytes && kBits == 8;
    static constexpr bool kIntegerCorrection = kCorrection != Correction::minimum && !kCentred;
    static constexpr int64_t kCodeBytes = group_code_bytes(kBits);

    struct Meta {
        typename V::Floats scales[kScales];
        typename V::Floats minimum;
    };

    static V_INLINE void load_codes(const uint8_t* packed, typename V::Bytes (&quads)[kQuads]) {
        if constexpr (kBits == 8) {
            V_UNROLL
            for (int j = 0; j < kQuads; ++j) quads[j] = V::load_byte_codes(packed + 64 * j);
        } else {
            V_UNROLL
            for (int v = 0; v < 4; ++v) {
                const typename V::Bytes nibbles = V::load_bytes(packed + 64 * v);
                quads[v] = V::template field<0, 0x0f>(nibbles);
                quads[v + 4] = V::template field<-4, 0x0f>(nibbles);
            }
        }
        if constexpr (kBits == 5) {
            const typename V::Bytes plane = V::load_bytes(packed + 256);
            quads[0] = V::merge(quads[0], V::template field<4, 0x10>(plane));
            quads[1] = V::merge(quads[1], V::template field<3, 0x10>(plane));
            quads[2] = V::merge(quads[2], V::template field<2, 0x10>(plane));
            quads[3] = V::merge(quads[3], V::template field<1, 0x10>(plane));
            quads[4] = V::merge(quads[4], V::template field<0, 0x10>(plane));
            quads[5] = V::merge(quads[5], V::template field<-1, 0x10>(plane));
            quads[6] = V::merge(quads[6], V::template field<-2, 0x10>(plane));
            quads[7] = V::merge(quads[7], V::template field<-3, 0x10>(plane));
        }
        if constexpr (kBits == 6) {
            V_UNROLL
            for (int p = 0; p < 2; ++p) {
                const typename V::Bytes plane = V::load_bytes(packed + 256 + 64 * p);
                quads[4 * p] = V::merge(quads[4 * p], V::template field<4, 0x30>(plane));
                quads[4 * p + 1] = V::merge(quads[4 * p + 1], V::template field<2, 0x30>(plane));
                quads[4 * p + 2] = V::merge(quads[4 * p + 2], V::template field<0, 0x30>(plane));
                quads[4 * p + 3] = V::merge(quads[4 * p + 3], V::template field<-2, 0x30>(plane));
            }
        }
    }

    static V_INLINE void load_meta(const PanelView& panel, int64_t group, Meta& meta) {
        if constexpr (kScaling == Scaling::half) {
            meta.scales[0] = V::load_f16(panel.meta + group * kHalfMetaBytes);
        } else if constexpr (kScaling == Scaling::super_min) {
            const uint8_t* block = panel.meta + group / kSuperGroups * kSuperMinMetaBytes;
            const uint8_t* sub = block + 4 * kPanelRows + group % kSuperGroups * kPanelRows;
            meta.scales[0] = V::mul(V::load_f16(block), V::load_u8(sub));
            meta.minimum = V::mul(V::load_f16(block + 2 * kPanelRows), V::load_u8(sub + kSuperGroups * kPanelRows));
        } else if constexpr (kScaling == Scaling::super_halves) {
            const uint8_t* block = panel.meta + group / kSuperGroups * kSuperHalvesMetaBytes;
            const uint8_t* sub = block + 2 * kPanelRows + group % kSuperGroups * 2 * kPanelRows;
            const typename V::Floats d = V::load_f16(block);
            V_UNROLL
            for (int h = 0; h < 2; ++h) meta.scales[h] = V::mul(d, V::load_i8(sub + h * kPanelRows));
        } else {
            const uint64_t index = static_cast<uint32_t>(group) / static_cast<uint32_t>(panel.groups_per_scale);
            if constexpr (kScaling == Scaling::single) {
                meta.scales[0] = V::load_f32(panel.meta + index * kSingleMetaBytes);
            } else {
                const uint8_t* block = panel.meta + index * kSingleZerosMetaBytes;
                meta.scales[0] = V::load_f32(block);
                meta.minimum = V::mul(meta.scales[0], V::load_f32(block + 4 * kPanelRows));
            }
        }
    }

    static V_INLINE typename V::Ints start(const QuantisedRows& rows, int64_t group_of_row, int half) {
        if constexpr (kIntegerCorrection) return V::broadcast_int(rows.corrections[group_of_row * kCorrections + half]);
        return V::zero_ints();
    }

    static V_INLINE typename V::Floats add_scaled(typename V::Ints dot, typename V::Floats scale, float activation_scale,
                                                  typename V::Floats sum) {
        return V::fma(V::to_floats(dot), V::mul(scale, V::broadcast(activation_scale)), sum);
    }

    static V_INLINE typename V::Floats add_minimum(typename V::Floats minimum, int32_t correction, typename V::Floats sum) {
        return V::fma(minimum, V::broadcast(float_from_bits(static_cast<uint32_t>(correction))), sum);
    }

    static void quantise(const float* x, int64_t groups, int8_t* codes, float* scales, int32_t* corrections) {
        constexpr uint32_t kInfinity = 0x7f800000u;
        for (int64_t g = 0; g < groups; ++g, x += kGroup, codes += kGroup, corrections += kCorrections) {
            const typename V::Floats low = V::load_f32(reinterpret_cast<const uint8_t*>(x));
            const typename V::Floats high = V::load_f32(reinterpret_cast<const uint8_t*>(x + 16));
            const uint32_t largest_bits = V::largest_magnitude_bits(low, high);
            const float largest = float_from_bits(largest_bits);
            // A group that is all but zero counts as zero: its reciprocal would overflow. One with a NaN or an infinity makes
            // the whole output row NaN.
            const bool usable = largest_bits < kInfinity && largest >= 1e-30f;
            const float scale = usable ? largest / 127.0f : largest_bits < kInfinity ? 0.0f : float_from_bits(0x7fc00000u);
            int32_t sums[2] = {0, 0};
            if (usable) {
                const float inverse = 127.0f / largest;
                sums[0] = V::store_rounded(V::mul(low, V::broadcast(inverse)), codes);
                sums[1] = V::store_rounded(V::mul(high, V::broadcast(inverse)), codes + 16);
            } else {
                for (int i = 0; i < kGroup; ++i) codes[i] = 0;
            }
            scales[g] = scale;
            if constexpr (kCorrection == Correction::group_zero) corrections[0] = -kFormat.zero * (sums[0] + sums[1]);
            if constexpr (kCorrection == Correction::half_zeros) {
                corrections[0] = -kFormat.zero * sums[0];
                corrections[1] = -kFormat.zero * sums[1];
            }
            if constexpr (kCorrection == Correction::minimum) {
                corrections[0] = static_cast<int32_t>(float_bits(-(scale * static_cast<float>(sums[0] + sums[1]))));
            }
        }
    }

    static void unpack(const PanelView& panel, int64_t first, int64_t count, uint8_t* codes, float* scales, float* minima) {
        for (int64_t g = first; g < first + count; ++g) {
            const uint8_t* packed = panel.codes + g * kCodeBytes;
            // The next block is fetched while this one is multiplied.
            for (int64_t line = 0; line < kCodeBytes; line += 64) V::prefetch(packed + count * kCodeBytes + line);
            typename V::Bytes quads[kQuads];
            load_codes(packed, quads);
            V_UNROLL
            for (int j = 0; j < kQuads; ++j) V::store_bytes(codes + 64 * j, quads[j]);
            codes += kGroupCodes;
            Meta meta;
            load_meta(panel, g, meta);
            V_UNROLL
            for (int h = 0; h < kScales; ++h) V::store_f32(scales + h * kPanelRows, meta.scales[h]);
            scales += kScales * kPanelRows;
            if constexpr (kCorrection == Correction::minimum) {
                V::store_f32(minima, meta.minimum);
                minima += kPanelRows;
            }
        }
    }

    /// R panels times C rows.
    template <int R, int C>
    static void tile(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, float* sums, int64_t stride,
                     bool first) {
        typename V::Floats sum[R][C];
        V_UNROLL
        for (int r = 0; r < R; ++r) {
            V_UNROLL
            for (int c = 0; c < C; ++c) {
                sum[r][c] = first ? V::broadcast(0.0f) : V::load_f32(reinterpret_cast<const uint8_t*>(
                                                             sums + c * stride + (first_panel + r) * kPanelRows));
            }
        }
        const int64_t panel_codes = weights.groups * kGroupCodes;
        const int64_t panel_scales = weights.groups * kScales * kPanelRows;
        const uint8_t* codes = weights.codes + first_panel * panel_codes;
        const float* scales = weights.scales + first_panel * panel_scales;
        const float* minima = weights.minima + first_panel * weights.groups * kPanelRows;
        for (int64_t g = 0; g < weights.groups; ++g, codes += kGroupCodes, scales += kScales * kPanelRows) {
            V_UNROLL
            for (int h = 0; h < kScales; ++h) {
                typename V::Ints dot[R][C];
                V_UNROLL
                for (int c = 0; c < C; ++c) {
                    const typename V::Ints begin = start(rows, c * rows.stride + g, h);
                    V_UNROLL
                    for (int r = 0; r < R; ++r) dot[r][c] = begin;
                }
                V_UNROLL
                for (int j = 0; j < kQuadsPerScale; ++j) {
                    const int quad = h * kQuadsPerScale + j;
                    typename V::Bytes w[R];
                    V_UNROLL
                    for (int r = 0; r < R; ++r) w[r] = V::pinned(V::load_bytes(codes + r * panel_codes + 64 * quad));
                    V_UNROLL
                    for (int c = 0; c < C; ++c) {
                        const typename V::Quad a = V::load_quad(rows.codes + (c * rows.stride + g) * kGroup + 4 * quad);
                        V_UNROLL
                        for (int r = 0; r < R; ++r) dot[r][c] = V::template dot<kBits>(dot[r][c], w[r], a);
                    }
                }
                V_UNROLL
                for (int r = 0; r < R; ++r) {
                    const typename V::Floats scale =
                        V::load_f32(reinterpret_cast<const uint8_t*>(scales + r * panel_scales + h * kPanelRows));
                    V_UNROLL
                    for (int c = 0; c < C; ++c) {
                        sum[r][c] = add_scaled(dot[r][c], scale, rows.scales[c * rows.stride + g], sum[r][c]);
                    }
                }
            }
            if constexpr (kCorrection == Correction::minimum) {
                V_UNROLL
                for (int r = 0; r < R; ++r) {
                    const typename V::Floats minimum = V::load_f32(
                        reinterpret_cast<const uint8_t*>(minima + (r * weights.groups + g) * kPanelRows));
                    V_UNROLL
                    for (int c = 0; c < C; ++c) {
                        sum[r][c] = add_minimum(minimum, rows.corrections[c * rows.stride + g], sum[r][c]);
                    }
                }
            }
        }
        V_UNROLL
        for (int r = 0; r < R; ++r) {
            V_UNROLL
            for (int c = 0; c < C; ++c) V::store_f32(sums + c * stride + (first_panel + r) * kPanelRows, sum[r][c]);
        }
    }

    static QuantisedRows skip(const QuantisedRows& rows, int64_t count) {
        const int64_t groups = count * rows.stride;
        return {rows.codes + groups * kGroup, rows.scales + groups, rows.corrections + groups * kCorrections, rows.stride};
    }

    template <int R>
    static void multiply_panels(const UnpackedPanels& weights, int first_panel, const QuantisedRows& rows, int64_t num_rows,
                                float* sums, int64_t stride, bool first) {
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

    template <int C>
    static void stream_rows_of(const PanelView& panel, int64_t groups, const QuantisedRows& rows, float* sums) {
        typename V::Floats sum[C];
        V_UNROLL
        for (int c = 0; c < C; ++c) sum[c] = V::broadcast(0.0f);
        for (int64_t g = 0; g < groups; ++g) {
            const uint8_t* codes = panel.codes + g * kCodeBytes;
            for (int64_t line = 0; line < kCodeBytes; line += 64) V::prefetch(codes + V::kPrefetchBytes + line);
            typename V::Bytes w[kQuads];
            load_codes(codes, w);
            Meta meta;
            load_meta(panel, g, meta);
            V_UNROLL
            for (int c = 0; c < C; ++c) {
                const int64_t at = c * rows.stride + g;
                const int8_t* a = rows.codes + at * kGroup;
                V_UNROLL
                for (int h = 0; h < kScales; ++h) {
                    typename V::Ints dot = start(rows, at, h);
                    V_UNROLL
                    for (int j = h * kQuadsPerScale; j < (h + 1) * kQuadsPerScale; ++j) {
                        dot = V::template dot<kBits>(dot, w[j], V::load_quad(a + 4 * j));
                    }
                    sum[c] = add_scaled(dot, meta.scales[h], rows.scales[at], sum[c]);
                }
                if constexpr (kCorrection == Correction::minimum) {
                    sum[c] = add_minimum(meta.minimum, rows.corrections[at], sum[c]);
                }
            }
        }
        V_UNROLL
        for (int c = 0; c < C; ++c) V::store_f32(sums + c * kPanelRows, sum[c]);
    }

    static void stream(const PanelView& panel, int64_t groups, const QuantisedRows& rows, int64_t num_rows, float* sums) {
        const int64_t computed = stream_rows(num_rows);
        if (computed == 1) return stream_rows_of<1>(panel, groups, rows, sums);
        if (computed == 2) return stream_rows_of<2>(panel, groups, rows, sums);
        if constexpr (V::kStreamTile > 2) {
            if (computed == 4) return stream_rows_of<4>(panel, groups, rows, sums);
            if (computed == 6) return stream_rows_of<6>(panel, groups, rows, sums);
            stream_rows_of<8>(panel, groups, rows, sums);
        }
    }

    static constexpr QuantisedKernels kernels() {
        if constexpr (V::kStreamTile > 0) return {quantise, unpack, multiply, stream};
        return {quantise, unpack, multiply, nullptr};
    }
};

constexpr QuantisedKernels kQuantisedKernels[kNumFormats] = {
    Panel<FormatId::q4_0>::kernels(), Panel<FormatId::q5_0>::kernels(), Panel<FormatId::q8_0>::kernels(),
    Panel<FormatId::q4_k>::kernels(), Panel<FormatId::q5_k>::kernels(), Panel<FormatId::q6_k>::kernels(),
    Panel<FormatId::int8>::kernels(), Panel<FormatId::int4>::kernels(), Panel<FormatId::int4_zeros>::kernels(),
};

constexpr QuantisedKernelTable kQuantisedTable{kQuantisedKernels, V::kTilePanels, V::kBlockGroups, V::kStreamTile,
                                              V::kMaxStreamRows};
