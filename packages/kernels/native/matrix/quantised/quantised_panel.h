#pragma once
#include <utility>

#include "../../core/half.h"
#include "quantised_kernels.h"

// What a quantised format is made of; included after an instruction set's vocabulary.
namespace octavo {
namespace {

/// Reads panels of the format kFormats[Id].
template <int Id>
struct Panel {
    static constexpr Format kFormat = kFormats[Id];
    static constexpr int kBits = kFormat.bits;
    static constexpr Scaling kScaling = kFormat.scaling;
    static constexpr Correction kCorrection = correction_of(kScaling);
    static constexpr int kScales = scales_per_group(kCorrection);
    static constexpr int kCorrections = corrections_per_group(kCorrection);
    static constexpr int kMinima = minima_per_group(kCorrection);
    /// Bits of the values that `load_quad` returns.
    static constexpr int kValueBits = value_bits(kFormat);
    static constexpr int kQuads = 8;
    static constexpr int kQuadsPerScale = kQuads / kScales;
    static constexpr bool kCentred = kCentredBytes && kValueBits == 8;
    static constexpr bool kIntegerCorrection = !has_minima(kCorrection) && !kCentred;
    static constexpr int64_t kCodeBytes = group_code_bytes(kBits);

    struct Meta {
        V::Floats scales[kScales];
        V::Floats minima[2];
    };

    /// Codes of quad J, one byte each.
    template <int J>
    static SIMD_INLINE V::Bytes load_quad(const uint8_t* packed) {
        if constexpr (kBits == 8) {
            return V::load_byte_codes(packed + 64 * J);
        } else if constexpr (kBits < 4) {
            const V::Bytes low = V::field<-2 * (J % 4), 0x03>(V::load_bytes(packed + 64 * (J / 4)));
            if constexpr (kBits == 2) return low;
            if constexpr (kBits == 3) return V::merge(low, V::field<2 - J, 0x04>(V::load_bytes(packed + 128)));
        } else {
            const V::Bytes nibbles = V::load_bytes(packed + 64 * (J % 4));
            const V::Bytes low = V::field<J < 4 ? 0 : -4, 0x0f>(nibbles);
            if constexpr (kFormat.table != nullptr) return V::look_up(low, kFormat.table);
            if constexpr (kBits == 4) return low;
            if constexpr (kBits == 5) return V::merge(low, V::field<4 - J, 0x10>(V::load_bytes(packed + 256)));
            if constexpr (kBits == 6) {
                return V::merge(low, V::field<4 - 2 * (J % 4), 0x30>(V::load_bytes(packed + 256 + 64 * (J / 4))));
            }
        }
    }

    template <int... J>
    static SIMD_INLINE void load_quads(const uint8_t* packed, V::Bytes (&quads)[kQuads], std::integer_sequence<int, J...>) {
        ((quads[J] = load_quad<J>(packed)), ...);
    }

    static SIMD_INLINE void load_meta(const PanelView& panel, int64_t group, Meta& meta) {
        const uint64_t place = static_cast<uint64_t>(group) % kSuperGroups;
        const uint8_t* unit = panel.meta + meta_offset(kFormat, meta_index(panel, group));
        if constexpr (kScaling == Scaling::half) {
            meta.scales[0] = V::load_f16(unit);
        } else if constexpr (kScaling == Scaling::super_min) {
            const uint8_t* sub = unit + 4 * kPanelRows + place * kPanelRows;
            meta.scales[0] = V::mul(V::load_f16(unit), V::load_u8(sub));
            meta.minima[0] = V::mul(V::load_f16(unit + 2 * kPanelRows), V::load_u8(sub + kSuperGroups * kPanelRows));
        } else if constexpr (kScaling == Scaling::half_min) {
            meta.scales[0] = V::load_f16(unit);
            meta.minima[0] = V::mul(V::load_f16(unit + 2 * kPanelRows), V::broadcast(-1.0f));
        } else if constexpr (kScaling == Scaling::exponents) {
            meta.scales[0] = V::load_halved_powers(unit);
        } else if constexpr (kScaling == Scaling::super_single) {
            meta.scales[0] = V::mul(V::load_f16(unit), V::load_i8(unit + (2 + place) * kPanelRows));
        } else if constexpr (kScaling == Scaling::super_half_minima) {
            const uint8_t* sub = unit + 4 * kPanelRows + place * 2 * kPanelRows;
            const V::Floats d = V::load_f16(unit);
            const V::Floats dmin = V::load_f16(unit + 2 * kPanelRows);
            SIMD_UNROLL
            for (int h = 0; h < 2; ++h) {
                meta.scales[h] = V::mul(d, V::load_nibbles<false>(sub + h * kPanelRows));
                meta.minima[h] = V::mul(dmin, V::load_nibbles<true>(sub + h * kPanelRows));
            }
        } else if constexpr (kScaling == Scaling::super_halves) {
            const uint8_t* sub = unit + 2 * kPanelRows + place * 2 * kPanelRows;
            const V::Floats d = V::load_f16(unit);
            SIMD_UNROLL
            for (int h = 0; h < 2; ++h) meta.scales[h] = V::mul(d, V::load_i8(sub + h * kPanelRows));
        } else if constexpr (kScaling == Scaling::row) {
            meta.scales[0] = V::broadcast(1.0f);
        } else if constexpr (kScaling == Scaling::single) {
            meta.scales[0] = V::load_f32(unit);
        } else {
            meta.scales[0] = V::load_f32(unit);
            V::Floats zero = V::load_f32(unit + 4 * kPanelRows);
            if constexpr (kCentred) zero = V::add(zero, V::broadcast(-128.0f));
            meta.minima[0] = V::mul(meta.scales[0], zero);
        }
    }

    static SIMD_INLINE int64_t meta_index(const PanelView& panel, int64_t group) {
        if constexpr (has_float_scales(kScaling)) {
            return static_cast<uint32_t>(group) / static_cast<uint32_t>(panel.groups_per_scale);
        }
        return static_cast<int64_t>(static_cast<uint64_t>(group) / static_cast<uint64_t>(groups_per_meta(kScaling, 1)));
    }

    /// Groups that share one activation scale, which stands at the first of them; fewer at the end of a row.
    static constexpr int64_t kWidth = activation_groups(kScaling);

    static void quantise(const float* x, int64_t groups, int8_t* codes, float* scales, int32_t* corrections) {
        for (int64_t g = 0; g < groups; g += kWidth) {
            const int64_t count = kWidth == 1 || kWidth < groups - g ? kWidth : groups - g;
            quantise_group(x + g * kGroup, count, codes + g * kGroup, scales + g, corrections + g * kCorrections);
        }
    }

    static SIMD_INLINE void quantise_group(const float* x, int64_t groups, int8_t* codes, float* scales, int32_t* corrections) {
        constexpr uint32_t kInfinity = 0x7f800000u;
        const auto values = [&](int64_t half) { return V::load_f32(reinterpret_cast<const uint8_t*>(x + half * 16)); };
        V::Ints most = V::broadcast_int(0);
        for (int64_t half = 0; half < 2 * groups; ++half) most = V::larger_magnitudes(most, values(half));
        const uint32_t largest_bits = V::largest(most);
        const float largest = float_from_bits(largest_bits);
        // A group whose values are nearly zero counts as zero: its reciprocal would overflow. A NaN or an infinity makes
        // the whole output row NaN.
        const bool usable = largest_bits < kInfinity && largest >= 1e-30f;
        const float scale = usable ? largest / 127.0f : largest_bits < kInfinity ? 0.0f : float_from_bits(0x7fc00000u);
        int32_t sums[2] = {0, 0};
        if (usable) {
            const V::Floats inverse = V::broadcast(127.0f / largest);
            V::Ints totals[2] = {V::broadcast_int(0), V::broadcast_int(0)};
            for (int64_t g = 0; g < groups; ++g) {
                SIMD_UNROLL
                for (int h = 0; h < 2; ++h) {
                    const int64_t half = 2 * g + h;
                    totals[h] = V::store_rounded(V::mul(values(half), inverse), codes + half * 16, totals[h]);
                }
            }
            for (int h = 0; h < 2; ++h) sums[h] = V::sum(totals[h]);
        } else {
            for (int64_t i = 0; i < groups * kGroup; ++i) codes[i] = 0;
        }
        scales[0] = scale;
        if constexpr (kCorrection == Correction::group_zero) corrections[0] = -kFormat.zero * (sums[0] + sums[1]);
        if constexpr (kCorrection == Correction::half_zeros) {
            corrections[0] = -kFormat.zero * sums[0];
            corrections[1] = -kFormat.zero * sums[1];
        }
        if constexpr (kCorrection == Correction::minimum) {
            corrections[0] = static_cast<int32_t>(float_bits(-(scale * static_cast<float>(sums[0] + sums[1]))));
        }
        if constexpr (kCorrection == Correction::half_minima) {
            for (int h = 0; h < 2; ++h) corrections[h] = static_cast<int32_t>(float_bits(-(scale * static_cast<float>(sums[h]))));
        }
    }

    /// One group of a panel into its place among unpacked ones.
    static SIMD_INLINE void unpack_group(const PanelView& panel, int64_t group, uint8_t* codes, float* scales, float* minima) {
        V::Bytes quads[kQuads];
        load_quads(panel.codes + code_offset(kFormat, group), quads, std::make_integer_sequence<int, kQuads>());
        SIMD_UNROLL
        for (int j = 0; j < kQuads; ++j) V::store_bytes(codes + 64 * j, quads[j]);
        Meta meta;
        load_meta(panel, group, meta);
        SIMD_UNROLL
        for (int h = 0; h < kScales; ++h) V::store_f32(scales + h * kPanelRows, meta.scales[h]);
        SIMD_UNROLL
        for (int h = 0; h < kMinima; ++h) V::store_f32(minima + h * kPanelRows, meta.minima[h]);
    }

    static void unpack(const PanelView& panel, int64_t first, int64_t count, uint8_t* codes, float* scales, float* minima) {
        for (int64_t g = first; g < first + count; ++g) {
            // The next block is fetched while this one is multiplied.
            const uint8_t* later = panel.codes + code_offset(kFormat, g + count);
            for (int64_t line = 0; line < kCodeBytes; line += 64) V::prefetch(later + line);
            unpack_group(panel, g, codes, scales, minima);
            codes += kGroupCodes;
            scales += kScales * kPanelRows;
            minima += kMinima * kPanelRows;
        }
    }
};

}  // namespace
}  // namespace octavo
