#pragma once
#include <cstdint>

#include "../layout.h"

namespace octavo {

/// bf16 weights in sixteen rows of whole blocks, one after the other as they lie in a file; no alignment is asked for.
struct WeightRows {
    const uint8_t* data;
    /// Blocks of kFloatBlock columns in a row.
    int64_t blocks;
    /// The sixteen rows that come next, prefetched while these are multiplied.
    const uint8_t* next;

    int64_t row_bytes() const { return blocks * kFloatBlock * 2; }
};

/// Kernels that read bf16 weights without packing them first. They sum as FloatMultiply does for bf16: over pairs of columns in
/// order, block by block, so that all of them give the same bits.
struct InPlaceKernelTable {
    /// For blocks in turn, the encoded row's pairs of columns as `multiply_one` wants them: spread_bytes(blocks).
    void (*spread)(const uint8_t* row, int64_t blocks, uint8_t* out);
    /// sums[16] of one activation row. `partial` is room for 16 * blocks floats.
    void (*multiply_one)(const WeightRows& weights, const uint8_t* spread, float* partial, float* sums);
    /// sums[row * stride + i] of num_rows encoded rows, which lie block by block as FloatMatrix::encode has them.
    void (*multiply)(const WeightRows& weights, const uint8_t* rows, int64_t num_rows, float* sums, int64_t stride);
    /// One block of sixteen rows, `row_bytes` apart, as a panel of FloatPanels.
    void (*unpack)(const uint8_t* weights, int64_t row_bytes, uint8_t* panel);
    /// Prefetches 64-byte lines.
    void (*prefetch)(const uint8_t* from, int64_t lines);
    /// Whether `count` values are all finite.
    bool (*finite)(const uint8_t* values, int64_t count);
};

/// Patterns of activations in which sixteen blocks that follow each other can meet a row's blocks.
int64_t spread_patterns(int64_t blocks);
inline int64_t spread_bytes(int64_t blocks) { return spread_patterns(blocks) * kFloatBlock / 2 * 64; }

extern const InPlaceKernelTable in_place_kernels_avx512, in_place_kernels_avx512_bf16;

/// The table of kernel_path(KernelKind::bf16); null where weights have to be packed.
const InPlaceKernelTable* in_place_kernels();

}  // namespace octavo
