#pragma once
#include <cstdint>

#include "../float/float_kernels.h"

namespace octavo {

/// Panels of codes hold pairs of columns: [pair][16 rows][2] bytes, or for table4 [pair][16 rows] bytes, the even column in the low
/// nibble. An odd last column is paired with codes of zero.
static inline constexpr int64_t codebook_pair_bytes(bool nibbles) { return nibbles ? 16 : 32; }

/// Writes the values of codes, `pairs` pairs of columns of one panel, in the form of the instruction set's tiles. Every code's
/// value is exact in bf16. As many bytes at `next` are prefetched meanwhile.
using DecodeValues = void (*)(const uint8_t* codes, int64_t pairs, const float* table, const uint8_t* next, void* out);

/// Scales and zero points of one panel: f32 [group][16 scales, 16 zeros].
struct GroupScales {
    const float* meta;
    int64_t group;
};

/// Likewise writes scale * (value(code) - zero), rounded to bf16; the first pair begins with column `first`.
using DecodeWeights = void (*)(const uint8_t* codes, int64_t pairs, const float* table, const GroupScales& scaling, int64_t first,
                               void* out);

/// Codes of several panels.
struct CodebookPanels {
    /// First panel, at the first column of the block.
    const uint8_t* codes;
    /// Bytes from one panel to the next.
    int64_t stride;
    int panels;
    /// As in FloatPanels.
    const float* scales;
    int64_t scale_stride;
};

/// Where the decoded values of panels go, as DecodeValues writes them; null when they are not kept.
struct DecodedPanels {
    uint8_t* tile;
    int64_t stride;
};

constexpr int64_t kMaxCodebookRows = 8;

/// As FloatMultiply for `num_rows` <= kMaxCodebookRows rows, the values being decoded on the way.
using MultiplyCodes = void (*)(const CodebookPanels& weights, const float* table, const FloatRows& rows, int64_t num_rows,
                               int64_t columns, float* sums, int64_t stride, bool first, const DecodedPanels& decoded);

/// How a block of columns is cut by groups: column i of the block belongs to group (column + i) / group, the last one reaching to the
/// block's end; its scales stand `stride` floats after those of the group before.
struct GroupCut {
    int64_t column;
    int64_t group;
    int64_t last;
    int64_t stride;

    /// Where the group of the block's column `at` ends within the block.
    int64_t end(int64_t at, int64_t columns) const {
        const int64_t index = (column + at) / group;
        const int64_t border = (index + 1) * group - column;
        return index >= last || border > columns ? columns : border;
    }
    int64_t index(int64_t at) const { return (column + at) / group < last ? (column + at) / group : last; }
};

/// FloatMultiply over one group after another, of which `weights.scales` are the block's first.
using MultiplyGroups = void (*)(const FloatPanels& weights, const GroupCut& cut, const FloatRows& rows, int64_t num_rows,
                                int64_t columns, float* sums, int64_t stride, bool first);

struct CodeKernels {
    DecodeValues values;
    DecodeWeights weights;
    /// Null where decoding first is as fast.
    MultiplyCodes multiply;
};

struct CodebookKernelTable {
    /// Whether tiles are bf16 pairs as in bf16 panels, which rows in bf16 multiply; otherwise they are f32 panels. See FloatPanels.
    bool pairs;
    /// Null where group after group is as fast.
    MultiplyGroups multiply_groups;
    /// E4M3 (Micikevicius et al., arXiv 2209.05433): sign, 4 exponent bits of bias 7, 3 mantissa bits; 0x7f and 0xff are NaN.
    CodeKernels f8_e4m3;
    CodeKernels uint8;
    /// Nibbles that index `table[16]`.
    CodeKernels table4;
};

OCTAVO_DECLARE_KERNELS(CodebookKernelTable, codebook_kernels);
/// The table of kernel_path(KernelKind::codebook).
const CodebookKernelTable& codebook_kernels();

}  // namespace octavo
