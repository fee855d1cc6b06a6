#pragma once
#include <cstdint>

#include "../../core/isa.h"

namespace octavo {

/// Packed float panels.
/// f32: [column][16 rows] f32. f16: [column][16 rows] f16. bf16: [column pair][16 rows][2] bf16, an odd last column padded with 0.
struct FloatPanels {
    /// First panel, at the first column of the block.
    const uint8_t* data;
    /// Bytes from one panel to the next.
    int64_t stride;
    int panels;
    /// What multiplies the partial sums of the first panel's 16 rows, those of the next `scale_stride` further on; null for none.
    const float* scales = nullptr;
    int64_t scale_stride = 0;
    /// Whether the panels are in the first-level or second-level cache already.
    bool cached = false;
};

/// Activations: f32 rows for f32 and f16 weights, bf16 rows (even number of columns) for bf16 weights.
struct FloatRows {
    const uint8_t* data;
    /// Bytes from one row to the next.
    int64_t stride;
};

/// sums[row * stride + panel * 16 + i] += scale * partial sum over `columns` <= kFloatBlock columns, or = when `first`.
/// `columns` is even for bf16.
using FloatMultiply = void (*)(const FloatPanels& weights, const FloatRows& rows, int64_t num_rows, int64_t columns, float* sums,
                               int64_t stride, bool first);

struct FloatKernelTable {
    FloatMultiply f32;
    FloatMultiply f16;
    FloatMultiply bf16;
    /// Rounds activations for `bf16`, to nearest, ties to even.
    void (*to_bf16)(const float* x, int64_t count, uint16_t* out);
    /// Panels that one call takes at most.
    int tile_panels;
};

OCTAVO_DECLARE_KERNELS(FloatKernelTable, float_kernels);
/// The table of a kind's path.
const FloatKernelTable& float_kernels(KernelKind kind);

}  // namespace octavo
