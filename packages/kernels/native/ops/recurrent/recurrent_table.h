#pragma once
#include "recurrent_kernels.h"
#include "../../simd/math.h"

// Included last by each instruction-set file, which names the table it fills.
namespace octavo {
namespace {

SIMD_INLINE Vec load_left(const float* p, int64_t left) {
    if (left >= Vec::width) return load(p);
    return left > 0 ? load_some(p, static_cast<int>(left)) : zero();
}
SIMD_INLINE void store_left(float* p, Vec a, int64_t left) {
    if (left >= Vec::width) {
        store(p, a);
    } else if (left > 0) {
        store_some(p, a, static_cast<int>(left));
    }
}

void normalise(const float* in, int64_t width, float eps, float scale, float* out) {
    Vec total[2] = {zero(), zero()};
    for (int64_t i = 0; i < width; i += 2 * Vec::width) {
        for (int64_t j = 0; j < 2; j++) {
            const Vec x = load_left(in + i + j * Vec::width, width - i - j * Vec::width);
            total[j] = multiply_add(x, x, total[j]);
        }
    }
    const Vec factor = splat(scale / __builtin_sqrtf(sum(total[0] + total[1]) + eps));
    for (int64_t i = 0; i < width; i += Vec::width) store_left(out + i, load_left(in + i, width - i) * factor, width - i);
}

/// Rows of the state whose sums run beside each other: as many as registers hold.
constexpr int kStateRows = Vec::width == 8 ? 2 : 4;
/// Vectors of columns that go through all tokens together.
constexpr int kStateVectors = 2;

/// Sums over the rows of the state, row i into sum i % kStateRows.
struct StateSums {
    Vec part[kStateRows][kStateVectors];

    SIMD_INLINE StateSums() {
        for (auto& row : part) {
            for (Vec& sums : row) sums = zero();
        }
    }
    SIMD_INLINE void add(int row, float factor, const Vec* state) {
        const Vec f = splat(factor);
        SIMD_UNROLL
        for (int j = 0; j < kStateVectors; j++) part[row][j] = multiply_add(f, state[j], part[row][j]);
    }
    SIMD_INLINE Vec total(int j) const {
        if constexpr (kStateRows == 2) return part[0][j] + part[1][j];
        return (part[0][j] + part[1][j]) + (part[kStateRows - 2][j] + part[kStateRows - 1][j]);
    }
};

/// What the state holds under a key: S^T k.
SIMD_INLINE StateSums recall(const float* state, int64_t key_dim, const float* k) {
    StateSums sums;
    for (int64_t i = 0; i < key_dim; i += kStateRows) {
        SIMD_UNROLL
        for (int row = 0; row < kStateRows; row++) {
            Vec s[kStateVectors];
            for (int j = 0; j < kStateVectors; j++) s[j] = load(state + (i + row) * state_tile + j * Vec::width);
            sums.add(row, k[i + row], s);
        }
    }
    return sums;
}

/// One token: updates the state, sums its output and, for the next token, what the new state holds under that one's key.
template <bool Recalls>
SIMD_INLINE void update(float* state, int64_t key_dim, const float* q, const float* k, const float* next_k, Vec decay,
                        const Vec* written, StateSums& out, StateSums& recalled) {
    for (int64_t i = 0; i < key_dim; i += kStateRows) {
        SIMD_UNROLL
        for (int row = 0; row < kStateRows; row++) {
            float* at = state + (i + row) * state_tile;
            const Vec key = splat(k[i + row]);
            Vec s[kStateVectors];
            SIMD_UNROLL
            for (int j = 0; j < kStateVectors; j++) {
                s[j] = multiply_add(key, written[j], load(at + j * Vec::width) * decay);
                store(at + j * Vec::width, s[j]);
            }
            out.add(row, q[i + row], s);
            if constexpr (Recalls) recalled.add(row, next_k[i + row], s);
        }
    }
}

template <bool IsDelta>
void recur(float* state, int64_t key_dim, const RecurrenceRun& run) {
    for (int64_t column = 0; column < run.columns; column += kStateVectors * Vec::width) {
        float* tile = state + column;
        StateSums recalled;
        if constexpr (IsDelta) recalled = recall(tile, key_dim, run.k);
        for (int64_t t = 0; t < run.count; t++) {
            const float* gates = run.gates + t * run.gate_stride;
            const Vec decay = splat(gates[0]);
            const Vec strength = splat(gates[1]);
            Vec written[kStateVectors];
            for (int j = 0; j < kStateVectors; j++) {
                const int64_t at = column + j * Vec::width;
                const Vec v = load_left(run.v + t * run.v_stride + at, run.columns - at);
                written[j] = IsDelta ? (v - recalled.total(j) * decay) * strength : v * strength;
            }
            const float* q = run.q + t * run.q_stride;
            const float* k = run.k + t * run.k_stride;
            StateSums out;
            StateSums next;
            if (IsDelta && t + 1 < run.count) {
                update<true>(tile, key_dim, q, k, k + run.k_stride, decay, written, out, next);
                recalled = next;
            } else {
                update<false>(tile, key_dim, q, k, nullptr, decay, written, out, next);
            }
            if (run.out == nullptr) continue;
            for (int j = 0; j < kStateVectors; j++) {
                const int64_t at = column + j * Vec::width;
                store_left(run.out + t * run.out_stride + at, out.total(j), run.columns - at);
            }
        }
    }
}

/// Token by token along its channels: a column of tokens would fall on few sets of the cache.
template <int Taps>
SIMD_INLINE void convolve_taps(const float* const* rows, int64_t count, const float* weight, int64_t weight_stride, const float* bias,
                               bool silu_after, int64_t width, float* out, int64_t out_stride) {
    for (int64_t t = 0; t < count; t++) {
        for (int64_t column = 0; column < width; column += Vec::width) {
            const int64_t left = width - column;
            Vec total = bias == nullptr ? zero() : load_left(bias + column, left);
            SIMD_UNROLL
            for (int i = 0; i < Taps; i++) {
                total = multiply_add(load_left(weight + i * weight_stride + column, left), load_left(rows[t + i] + column, left), total);
            }
            store_left(out + t * out_stride + column, silu_after ? silu(total) : total, left);
        }
    }
}

void convolve(const float* const* rows, int64_t count, int64_t taps, const float* weight, int64_t weight_stride, const float* bias,
              bool silu_after, int64_t width, float* out, int64_t out_stride) {
    switch (taps) {
#define OCTAVO_TAPS(n) \
    case n: return convolve_taps<n>(rows, count, weight, weight_stride, bias, silu_after, width, out, out_stride);
        OCTAVO_TAPS(2)
        OCTAVO_TAPS(3)
        OCTAVO_TAPS(4)
        OCTAVO_TAPS(5)
        OCTAVO_TAPS(6)
        OCTAVO_TAPS(7)
        OCTAVO_TAPS(8)
#undef OCTAVO_TAPS
    }
}

constexpr RecurrentKernels make_recurrent_table() { return {normalise, recur<true>, recur<false>, convolve}; }

}  // namespace
}  // namespace octavo
