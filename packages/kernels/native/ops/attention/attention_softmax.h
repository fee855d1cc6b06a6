#pragma once
#include "attention_floats.h"

// Online softmax (Milakov and Gimelshein, 2018) of a few rows over a chunk of `attention_chunk` positions.
namespace octavo {
namespace {

/// Scales of an int8 cache for the positions of a chunk; null where the cache has none.
struct ChunkScales {
    const float* keys;
    const float* values;
};

inline Lanes visible_lanes(const AttentionState& row, int64_t j) {
    const int64_t above = smaller(row.high - j, Vec::width);
    const int64_t below = row.low > j ? row.low - j : 0;
    return static_cast<Lanes>((uint64_t{1} << above) - (uint64_t{1} << below));
}

/// Largest score of a row of dot products, which it turns into scores; -infinity where the row does not see.
inline float score_row(const AttentionContext& context, float* scores, const ChunkScales& scales,
                       const AttentionState& row) {
    constexpr int64_t w = Vec::width;
    const Vec factor = splat(context.scale);
    const Vec cap = splat(context.soft_cap);
    const Vec hidden = splat(-__builtin_inff());
    Vec best = hidden;
    for (int64_t j = row.low / w * w; j < row.high; j += w) {
        Vec s = load(scores + j) * factor;
        if (scales.keys != nullptr) s = s * load(scales.keys + j);
        if (context.soft_cap != 0.0f) s = cap * hyperbolic_tangent(s / cap);
        if (j < row.low || j + w > row.high) s = select(visible_lanes(row, j), s, hidden);
        store(scores + j, s);
        best = maximum(best, s);
    }
    return largest(best);
}

/// Turns scores into softmax numerators (times the values' scales); returns the numerators' sum.
inline float soften_row(float* scores, const ChunkScales& scales, const AttentionState& row) {
    constexpr int64_t w = Vec::width;
    const Vec shift = splat(row.largest);
    Vec total = zero();
    for (int64_t j = row.low / w * w; j < row.high; j += w) {
        Vec p = exponential(load(scores + j) - shift);
        total = total + p;
        if (scales.values != nullptr) {
            p = p * load(scales.values + j);
            // Scales of positions out of sight may be anything.
            if (j < row.low || j + w > row.high) p = select(visible_lanes(row, j), p, zero());
        }
        store(scores + j, p);
    }
    return sum(total);
}

/// Softmax of a few rows of dot products, and the rescaling of what they have accumulated. One thing at a time for all rows:
/// each is a chain of dependent instructions, and chains of different rows run side by side. Fetches so many lines twice a row.
template <typename Arithmetic>
inline void soften(const AttentionContext& context, int64_t count, float* scores, const ChunkScales& scales,
                   AttentionState* states, float* accumulated, int64_t stride, Ahead& ahead, int64_t lines_at_once) {
    float previous[most_rows];
    for (int64_t r = 0; r < count; r++) {
        previous[r] = states[r].largest;
        if (states[r].low >= states[r].high) continue;
        ahead.fetch(lines_at_once);
        const float in_chunk = score_row(context, scores + r * chunk_size, scales, states[r]);
        states[r].largest = previous[r] > in_chunk ? previous[r] : in_chunk;
    }
    float totals[most_rows] = {};
    for (int64_t r = 0; r < count; r++) {
        if (states[r].low >= states[r].high) continue;
        ahead.fetch(lines_at_once);
        totals[r] = soften_row(scores + r * chunk_size, scales, states[r]);
        Arithmetic::pack(scores + r * chunk_size, states[r].low, states[r].high);
    }
    for (int64_t r = 0; r < count; r++) {
        if (states[r].low >= states[r].high) continue;
        if (states[r].largest == previous[r]) {
            states[r].total = states[r].total + totals[r];
            continue;
        }
        // The first chunk leaves -infinity - largest, whose exponential is 0.
        float rescale[Vec::width];
        store(rescale, exponential(splat(previous[r] - states[r].largest)));
        states[r].total = states[r].total * rescale[0] + totals[r];
        scale(accumulated + r * stride, rescale[0], stride);
    }
}

}  // namespace
}  // namespace octavo
