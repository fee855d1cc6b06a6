#pragma once
#include <cstdint>

#include "../../core/isa.h"
#include "formats.h"

namespace octavo {

/// Rows quantised to int8: codes [32], one scale and one or two corrections per group of 32 columns. Where several groups share them
/// (activation_groups), the first one has them.
/// Pointers stand at the first group wanted of the first row; strides lead to the next row, in groups.
struct QuantisedRows {
    const int8_t* codes;
    const float* scales;
    /// int32 or float bits, see Correction.
    const int32_t* corrections;
    int64_t stride;
};

/// Weights of `panels` panels as bytes: codes [8 quads][16 rows][4] of each group, as the instruction set's dot product wants them;
/// scales [panel][groups][scales_per_group][16], minima likewise.
struct UnpackedPanels {
    uint8_t* codes;
    float* scales;
    float* minima;
    int panels;
    int64_t groups;
    /// From a panel's codes to the next one's, and from a group's.
    int64_t panel_bytes;
    int64_t group_bytes;

    static UnpackedPanels of(uint8_t* codes, float* scales, float* minima, int panels, int64_t groups) {
        return {codes, scales, minima, panels, groups, groups * kGroupCodes, kGroupCodes};
    }
    /// A pair, or the last panel, where it lies packed.
    static UnpackedPanels in_place(const PanelView& first, int64_t group, int panels, int64_t groups) {
        uint8_t* codes = const_cast<uint8_t*>(first.codes) + group * kPairPanels * kGroupCodes;
        return {codes, nullptr, nullptr, panels, groups, kGroupCodes, kPairPanels * kGroupCodes};
    }
};

/// A pair of panels to be multiplied as they lie packed, whatever pair of the layout they are.
struct PackedPair {
    PanelView panels[kPairPanels];
    /// What is prefetched meanwhile: a pair's bytes from `begin` to `end`, then from `next` on. For a pair in memory these are its own
    /// bytes and the next pair's; for a pair in cache, the bytes of the next two.
    const uint8_t* begin;
    const uint8_t* end;
    const uint8_t* next;
};

/// Kernels of one format. All of them compute, for each output row and each activation row,
/// sum = fma(float(integer dot), scale * activation scale, sum), or, with two scales in a group,
/// sum = fma(fma(float(dot1), scale1, float(dot0) * scale0), activation scale, sum), then fma(minimum, correction, sum) for each
/// minimum, group by group in ascending order: whichever is used, sums are the same to the bit. With one scale for a row of weights,
/// scale is 1 and who calls them multiplies the finished sums.
struct QuantisedKernels {
    /// Quantises `groups` groups of one row.
    void (*quantise)(const float* x, int64_t groups, int8_t* codes, float* scales, int32_t* corrections);
    /// Groups [first, first + count) of one panel into the place of one unpacked panel.
    void (*unpack)(const PanelView& panel, int64_t first, int64_t count, uint8_t* codes, float* scales, float* minima);
    /// sums[row * stride + panel * 16 + i] += product over the unpacked groups, or = when `first`.
    void (*multiply)(const UnpackedPanels& weights, const QuantisedRows& rows, int64_t num_rows, float* sums, int64_t stride,
                     bool first);
    /// A pair times `num_rows` <= max_stream_rows rows over all groups, reading the weights once from memory:
    /// sums[row * stride + panel * 16 + i]. More rows than stream_rows lie in blocks of block_groups groups: all rows of
    /// the first, then of the second. Null when max_stream_rows is 0.
    void (*stream)(const PackedPair& pair, int64_t groups, const QuantisedRows& rows, int64_t num_rows, float* sums, int64_t stride);
    /// sums[row * stride + i] *= s[i], the f32 scales [16] of a panel; null where scales belong to groups.
    void (*scale)(const uint8_t* scales, int64_t num_rows, float* sums, int64_t stride);
    /// Whether `multiply` takes codes where they lie packed.
    bool in_place;
};

/// Kernels of an instruction set.
struct QuantisedKernelTable {
    const QuantisedKernels* formats;  // as kFormats
    /// Panels unpacked together for `multiply`.
    int tile_panels;
    /// Groups unpacked together.
    int block_groups;
    /// Up to this many rows, `stream` multiplies panels as they lie packed.
    int stream_rows;
    /// Up to this many rows, `stream` beats `unpack` and `multiply`.
    int max_stream_rows;
};

OCTAVO_DECLARE_KERNELS(QuantisedKernelTable, quantised_kernels);
extern const QuantisedKernelTable quantised_kernels_avx512_amx;
/// The table of kernel_path(KernelKind::quantised).
const QuantisedKernelTable& quantised_kernels();

}  // namespace octavo
