#pragma once
#include <cstdint>

#include "../../core/isa.h"

namespace octavo {

/// Columns of a head's state that are computed together and stored side by side: a head of `value_dim` columns is
/// ceil(value_dim / state_tile) tiles of `[key_dim][state_tile]`.
constexpr int64_t state_tile = 32;

/// Consecutive tokens of one sequence and head, as one tile of its state sees them.
struct RecurrenceRun {
    int64_t count;
    const float* q;  // [key_dim] a token
    const float* k;
    int64_t q_stride;
    int64_t k_stride;
    const float* v;  // the tile's columns of a token
    int64_t v_stride;
    const float* gates;  // decay, then write strength, of a token
    int64_t gate_stride;
    float* out;  // the tile's columns of a token; null where nobody reads them
    int64_t out_stride;
    /// Columns of the tile that exist.
    int64_t columns;
};

/// Primitives of one instruction set. A token's result depends on the state before it and its own inputs alone, in one order of
/// operations: a run computes the same bits as its tokens one by one.
struct RecurrentKernels {
    /// out = in * scale / sqrt(sum of squares + eps)
    void (*normalise)(const float* in, int64_t width, float eps, float scale, float* out);
    /// Gated delta rule (arXiv 2412.06464): S = decay S + k (write (v - decay S^T k))^T, out = S^T q. key_dim is a multiple of 4.
    void (*delta_rule)(float* state, int64_t key_dim, const RecurrenceRun& run);
    /// Mamba-2 (arXiv 2405.21060): S = decay S + k (write v)^T, out = S^T q.
    void (*accumulate)(float* state, int64_t key_dim, const RecurrenceRun& run);
    /// out[t] = activation(bias + sum over i of weight[i] * rows[t + i]), weights `[taps][weight_stride]`; `bias` may be null.
    void (*convolve)(const float* const* rows, int64_t count, int64_t taps, const float* weight, int64_t weight_stride,
                     const float* bias, bool silu, int64_t width, float* out, int64_t out_stride);
};

constexpr int64_t most_taps = 8;

OCTAVO_DECLARE_KERNELS(RecurrentKernels, recurrent_kernels);
/// The table for the path of row ops.
const RecurrentKernels& recurrent_kernels();

}  // namespace octavo
