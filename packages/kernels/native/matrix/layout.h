#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

/// To be raised whenever packed bytes come to mean something else: files of packed weights outlive the build that wrote them.
constexpr int kPackedLayoutVersion = 1;

/// Packed weights are cut into panels of 16 output rows; rows that pad the last panel are zero.
constexpr int kPanelRows = 16;
/// Columns that share one activation scale, and the unit in which quantised weights are packed.
constexpr int kGroup = 32;
/// Columns of a GGUF K-quant super-block.
constexpr int kSuperGroups = 8;
/// Codes of one group of one panel, one byte each: 8 quads of [16 rows][4 columns].
constexpr int kGroupCodes = kPanelRows * kGroup;
/// Float products are summed in partial sums over this many columns, then block by block: one order for every path.
constexpr int kFloatBlock = 256;

/// How a code u of a row becomes a weight. `s` and `m` are per row and group of 32 columns unless said otherwise.
enum class Scaling {
    /// s*(u - zero), s in f16. Meta: per group f16 s[16].
    half,
    /// (d*sc)*u - (dmin*mn). Meta: per super-block f16 d[16], f16 dmin[16], u8 sc[8][16], u8 mn[8][16].
    super_min,
    /// (d*sc)*(u - zero), sc per 16 columns. Meta: per super-block f16 d[16], i8 sc[16 halves][16].
    super_halves,
    /// s*(u - zero), s in f32 over `groups_per_scale` groups. Meta: per scale f32 s[16].
    single,
    /// s*(u - z). Meta: per scale f32 s[16], f32 z[16].
    single_zeros,
};

/// What the integer dot products need besides the scale.
enum class Correction {
    /// -zero * (sum of the group's activations), added as an integer.
    group_zero,
    /// The same for each half of the group.
    half_zeros,
    /// -(activation scale) * (sum), a float that multiplies the group's minimum.
    minimum,
};

struct Format {
    int bits;  // 4, 5, 6 or 8
    int zero;
    Scaling scaling;
};

constexpr Format kQ4_0{4, 8, Scaling::half};
constexpr Format kQ5_0{5, 16, Scaling::half};
constexpr Format kQ8_0{8, 128, Scaling::half};
constexpr Format kQ4_K{4, 0, Scaling::super_min};
constexpr Format kQ5_K{5, 0, Scaling::super_min};
constexpr Format kQ6_K{6, 32, Scaling::super_halves};
constexpr Format kInt8{8, 128, Scaling::single};
constexpr Format kInt4{4, 8, Scaling::single};
constexpr Format kInt4Zeros{4, 0, Scaling::single_zeros};

static inline constexpr Correction correction_of(Scaling scaling) {
    switch (scaling) {
        case Scaling::super_min:
        case Scaling::single_zeros:
            return Correction::minimum;
        case Scaling::super_halves:
            return Correction::half_zeros;
        case Scaling::half:
        case Scaling::single:
            break;
    }
    return Correction::group_zero;
}

/// Corrections (int32 or float) per row and group.
static inline constexpr int corrections_per_group(Correction correction) { return correction == Correction::half_zeros ? 2 : 1; }
/// Scales per output row and group.
static inline constexpr int scales_per_group(Correction correction) { return correction == Correction::half_zeros ? 2 : 1; }

/// Packed codes of one group of one panel: a plane of nibbles, then a plane of the bits above them.
/// Byte i of nibble vector v (64 bytes) holds byte i of quads v (low) and v + 4 (high).
/// 5 bits: bit j of byte i of the high plane belongs to quad j.
/// 6 bits: bits 2t, 2t+1 of byte i of high vector p belong to quad 4p + t.
/// 8 bits: the eight quads as they are.
static inline constexpr int64_t group_code_bytes(int bits) { return 64 * bits; }

constexpr int64_t kHalfMetaBytes = 2 * kPanelRows;
constexpr int64_t kSuperMinMetaBytes = 4 * kPanelRows + 2 * kSuperGroups * kPanelRows;
constexpr int64_t kSuperHalvesMetaBytes = 2 * kPanelRows + 2 * kSuperGroups * kPanelRows;
constexpr int64_t kSingleMetaBytes = 4 * kPanelRows;
constexpr int64_t kSingleZerosMetaBytes = 8 * kPanelRows;

static inline constexpr int64_t panel_meta_bytes(Scaling scaling, int64_t groups, int64_t groups_per_scale) {
    switch (scaling) {
        case Scaling::half:
            return groups * kHalfMetaBytes;
        case Scaling::super_min:
            return groups / kSuperGroups * kSuperMinMetaBytes;
        case Scaling::super_halves:
            return groups / kSuperGroups * kSuperHalvesMetaBytes;
        case Scaling::single:
            return groups / groups_per_scale * kSingleMetaBytes;
        case Scaling::single_zeros:
            return groups / groups_per_scale * kSingleZerosMetaBytes;
    }
    return 0;
}

/// One packed panel: all groups' codes, then all groups' meta.
struct PanelView {
    const uint8_t* codes;
    const uint8_t* meta;
    int64_t groups_per_scale;
};

}  // namespace octavo
