#pragma once
#include <cstddef>
#include <cstdint>

#include "../layout.h"
#include "../weight_types.h"

namespace octavo {

/// Quantised panels lie in pairs, see PanelView.
constexpr int kPairPanels = 2;
/// Columns of a GGUF K-quant super-block.
constexpr int kSuperGroups = 8;
/// Codes of one group of one panel, one byte each: 8 quads of [16 rows][4 columns].
constexpr int kGroupCodes = kPanelRows * kGroup;

/// What the integer dot products need besides the scale.
enum class Correction {
    /// -zero * (sum of the group's activations), added as an integer.
    group_zero,
    /// The same for each half of the group.
    half_zeros,
    /// -(activation scale) * (sum), a float that multiplies the group's minimum.
    minimum,
    /// The same for each half of the group.
    half_minima,
};

/// Whether scales are f32 beside the codes, over whole units of packing.
static inline constexpr bool has_float_scales(Scaling scaling) {
    return scaling == Scaling::single || scaling == Scaling::single_zeros || scaling == Scaling::row;
}

/// Neighbouring groups of activations that share one scale. Their integer sums are one where the weights' scale is the same all along
/// the row, which saves an eighth of the arithmetic beside scaling each group.
static inline constexpr int64_t activation_groups(Scaling scaling) { return scaling == Scaling::row ? 4 : 1; }

/// Bits of u.
static inline constexpr int value_bits(const Format& format) { return format.table != nullptr ? 8 : format.bits; }

static inline constexpr Correction correction_of(Scaling scaling) {
    switch (scaling) {
        case Scaling::super_min:
        case Scaling::half_min:
        case Scaling::single_zeros:
            return Correction::minimum;
        case Scaling::super_half_minima:
            return Correction::half_minima;
        case Scaling::super_halves:
            return Correction::half_zeros;
        case Scaling::half:
        case Scaling::super_single:
        case Scaling::exponents:
        case Scaling::single:
        case Scaling::row:
            break;
    }
    return Correction::group_zero;
}

static inline constexpr bool has_halves(Correction correction) {
    return correction == Correction::half_zeros || correction == Correction::half_minima;
}
static inline constexpr bool has_minima(Correction correction) {
    return correction == Correction::minimum || correction == Correction::half_minima;
}
/// Corrections (int32 or float) per row and group.
static inline constexpr int corrections_per_group(Correction correction) { return has_halves(correction) ? 2 : 1; }
/// Scales per output row and group.
static inline constexpr int scales_per_group(Correction correction) { return has_halves(correction) ? 2 : 1; }
/// Minima per output row and group.
static inline constexpr int minima_per_group(Correction correction) {
    return correction == Correction::half_minima ? 2 : correction == Correction::minimum ? 1 : 0;
}

/// Packed codes of one group of one panel.
/// 2 bits: bits 2t, 2t+1 of byte i of vector p (64 bytes) belong to byte i of quad 4p + t.
/// 3 bits: the same, then a plane of third bits, bit j of byte i belonging to quad j.
/// 4 to 6 bits: a plane of nibbles, then a plane of the bits above them.
/// Byte i of nibble vector v (64 bytes) holds byte i of quads v (low) and v + 4 (high).
/// 5 bits: bit j of byte i of the high plane belongs to quad j.
/// 6 bits: bits 2t, 2t+1 of byte i of high vector p belong to quad 4p + t.
/// 8 bits: the eight quads as they are.
static inline constexpr int64_t group_code_bytes(int bits) { return 64 * bits; }

constexpr int64_t kHalfMetaBytes = 2 * kPanelRows;
constexpr int64_t kSuperMinMetaBytes = 4 * kPanelRows + 2 * kSuperGroups * kPanelRows;
constexpr int64_t kSuperHalvesMetaBytes = 2 * kPanelRows + 2 * kSuperGroups * kPanelRows;
constexpr int64_t kHalfMinMetaBytes = 4 * kPanelRows;
constexpr int64_t kSuperSingleMetaBytes = 2 * kPanelRows + kSuperGroups * kPanelRows;
constexpr int64_t kSuperHalfMinimaMetaBytes = 4 * kPanelRows + 2 * kSuperGroups * kPanelRows;
constexpr int64_t kExponentMetaBytes = kPanelRows;
constexpr int64_t kSingleMetaBytes = 4 * kPanelRows;
constexpr int64_t kSingleZerosMetaBytes = 8 * kPanelRows;

/// Bytes of meta for a group, a super-block or a scale: what `groups_per_meta` groups share.
static inline constexpr int64_t meta_unit_bytes(Scaling scaling) {
    switch (scaling) {
        case Scaling::half:
            return kHalfMetaBytes;
        case Scaling::half_min:
            return kHalfMinMetaBytes;
        case Scaling::exponents:
            return kExponentMetaBytes;
        case Scaling::super_min:
            return kSuperMinMetaBytes;
        case Scaling::super_single:
            return kSuperSingleMetaBytes;
        case Scaling::super_half_minima:
            return kSuperHalfMinimaMetaBytes;
        case Scaling::super_halves:
            return kSuperHalvesMetaBytes;
        case Scaling::single:
        case Scaling::row:
            return kSingleMetaBytes;
        case Scaling::single_zeros:
            return kSingleZerosMetaBytes;
    }
    return 0;
}

static inline constexpr int64_t groups_per_meta(Scaling scaling, int64_t groups_per_scale) {
    switch (scaling) {
        case Scaling::super_min:
        case Scaling::super_single:
        case Scaling::super_half_minima:
        case Scaling::super_halves:
            return kSuperGroups;
        case Scaling::single:
        case Scaling::single_zeros:
        case Scaling::row:
            return groups_per_scale;
        case Scaling::half:
        case Scaling::half_min:
        case Scaling::exponents:
            break;
    }
    return 1;
}

static inline constexpr int64_t panel_meta_bytes(Scaling scaling, int64_t groups, int64_t groups_per_scale) {
    return groups / groups_per_meta(scaling, groups_per_scale) * meta_unit_bytes(scaling);
}

/// Groups whose codes are followed by their meta, one unit of it; 0 where all meta lies behind all codes, because a unit would
/// leave what follows it off the cache lines or belongs to any number of groups.
static inline constexpr int64_t stretch_groups(Scaling scaling) {
    const bool apart = scaling == Scaling::exponents || has_float_scales(scaling);
    return apart ? 0 : groups_per_meta(scaling, 1);
}

/// One panel of a pair. Products read both at once, so they lie in the order of reading, as one run of memory: what one thread
/// reads side by side from several places arrives slower than it is used. For each stretch: the codes of each group, first
/// panel, second panel; then the first panel's meta, the second's. Or all groups' codes, then the first panel's meta, the second's.
struct PanelView {
    /// Codes of the first group; code_offset finds the others.
    const uint8_t* codes;
    /// The first unit; the others' by meta_offset.
    const uint8_t* meta;
    int64_t groups_per_scale;
};

/// From a panel's first codes to those of a group.
static inline constexpr int64_t code_offset(const Format& format, int64_t group) {
    const int64_t stretch = stretch_groups(format.scaling);
    const int64_t units = stretch == 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(group) / static_cast<uint64_t>(stretch));
    return kPairPanels * (group * group_code_bytes(format.bits) + units * meta_unit_bytes(format.scaling));
}

/// From a panel's first meta to that of a unit.
static inline constexpr int64_t meta_offset(const Format& format, int64_t unit) {
    const int64_t stretch = stretch_groups(format.scaling);
    if (stretch == 0) return unit * meta_unit_bytes(format.scaling);
    return unit * kPairPanels * (stretch * group_code_bytes(format.bits) + meta_unit_bytes(format.scaling));
}

/// From the beginning of a pair to the meta of its panel `index`.
static inline constexpr int64_t first_meta_offset(const Format& format, int64_t index, int64_t groups, int64_t groups_per_scale) {
    const int64_t stretch = stretch_groups(format.scaling);
    const int64_t bytes = stretch == 0 ? panel_meta_bytes(format.scaling, groups, groups_per_scale) : meta_unit_bytes(format.scaling);
    return kPairPanels * (stretch == 0 ? groups : stretch) * group_code_bytes(format.bits) + index * bytes;
}

}  // namespace octavo
