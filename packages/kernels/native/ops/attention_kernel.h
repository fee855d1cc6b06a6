#pragma once
#include "attention_floats.h"

// Attention of rows over chunks of their context: online softmax (Milakov and Gimelshein, 2018) over `attention_chunk`
// positions at a time, ascending. A row uses exactly the positions that it sees, so that it never feels its neighbours.
namespace {

/// Scales of an int8 cache for the positions of a chunk; null where the cache has none.
struct ChunkScales {
    const float* keys;
    const float* values;
};

inline Lanes visible_lanes(const octavo::AttentionState& row, int64_t j) {
    const int64_t above = smaller(row.high - j, Vec::width);
    const int64_t below = row.low > j ? row.low - j : 0;
    return static_cast<Lanes>((uint64_t{1} << above) - (uint64_t{1} << below));
}

/// Largest score of a row of dot products, which it turns into scores; -infinity where the row does not see.
inline float score_row(const octavo::AttentionContext& context, float* scores, const ChunkScales& scales,
                       const octavo::AttentionState& row) {
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
inline float soften_row(float* scores, const ChunkScales& scales, const octavo::AttentionState& row) {
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
/// each is a chain of dependent instructions, and chains of different rows run side by side.
template <typename Arithmetic>
inline void soften(const octavo::AttentionContext& context, int64_t count, float* scores, const ChunkScales& scales,
                   octavo::AttentionState* states, float* accumulated, int64_t stride, Ahead& ahead) {
    // Half of what a chunk of bf16 takes; the products fetch the other half.
    const int64_t lines_at_once = (stride + count - 1) / count;
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

/// Of each row of `source`, the bits in `mask` alone.
template <typename Source>
struct Masked {
    static constexpr bool fetches_ahead = false;
    using Arithmetic = typename Source::Arithmetic;
    const Source& source;
    uint32_t mask;
    typename Arithmetic::Packed at(int64_t k, int64_t column) const { return Arithmetic::keep(source.at(k, column), mask); }
};

/// accumulated += p * v over one row's positions [from, to). Where a factor covers a pair of positions of which the row
/// sees one, the other one's value is taken out: it may be anything.
template <typename Source>
void weigh_alone(const float* scores, const Source& values, int64_t from, int64_t to, int64_t vecs, float* accumulated,
                 int64_t stride) {
    constexpr int64_t step = Source::Arithmetic::step;
    const auto weigh_half = [&](int64_t pair, uint32_t mask) {
        multiply(1, scores, chunk_size, Masked<Source>{values, mask}, 0, vecs, pair, pair + 1, accumulated, stride, true, nullptr);
    };
    if (step == 2 && from < to && from % 2 != 0) weigh_half(from++ / 2, 0xffff0000u);
    if (from / step < to / step) {
        multiply(1, scores, chunk_size, values, 0, vecs, from / step, to / step, accumulated, stride, true, nullptr);
    }
    if (step == 2 && from < to && to % 2 != 0) weigh_half(to / 2, 0x0000ffffu);
}

/// accumulated[r] += p * v over each row's own positions: together where the rows agree, alone where they do not.
template <typename Source>
void weigh_values(int64_t count, const octavo::AttentionState* states, const float* scores, const Source& values,
                  int64_t stride, float* accumulated, Ahead& ahead) {
    constexpr int64_t step = Source::Arithmetic::step;
    const int64_t vecs = stride / Vec::width;
    int64_t low = 0;
    int64_t high = chunk_size / step;
    for (int64_t r = 0; r < count; r++) {
        const int64_t first = (states[r].low + step - 1) / step;
        const int64_t last = states[r].high / step;
        low = first > low ? first : low;
        high = last < high ? last : high;
    }
    const bool together = low < high;
    if (together) {
        for (int64_t r = 0; r < count; r++) {
            if (states[r].low >= low * step) continue;
            weigh_alone(scores + r * chunk_size, values, states[r].low, low * step, vecs, accumulated + r * stride, stride);
        }
        multiply(count, scores, chunk_size, values, 0, vecs, low, high, accumulated, stride, true, &ahead);
    }
    for (int64_t r = 0; r < count; r++) {
        const int64_t from = together ? high * step : states[r].low;
        if (from >= states[r].high) continue;
        weigh_alone(scores + r * chunk_size, values, from, states[r].high, vecs, accumulated + r * stride, stride);
    }
}

template <typename Keys, typename Values>
void attend_rows(const octavo::AttentionRows& rows, const octavo::AttentionContext& context, int64_t first, int64_t count,
                 const Keys& keys, const Values& values, const ChunkScales& scales, Ahead& ahead) {
    const int64_t stride = octavo::attention_stride(context.head_dim);
    octavo::AttentionState* states = rows.states + first;
    float* accumulated = rows.accumulated + first * stride;
    int64_t low = chunk_size;
    int64_t high = 0;
    for (int64_t r = 0; r < count; r++) {
        if (states[r].low >= states[r].high) continue;
        low = states[r].low < low ? states[r].low : low;
        high = states[r].high > high ? states[r].high : high;
    }
    if (low >= high) return;
    alignas(64) float scores[most_rows * chunk_size];
    multiply(count, rows.queries + first * stride, stride, keys, low / Vec::width, (high + Vec::width - 1) / Vec::width, 0,
             context.head_dim / Keys::Arithmetic::step, scores, chunk_size, false, &ahead);
    soften<typename Values::Arithmetic>(context, count, scores, scales, states, accumulated, stride, ahead);
    weigh_values(count, states, scores, values, stride, accumulated, ahead);
}

/// Copies the scales of positions base + [low, high).
inline void load_scales(const octavo::AttentionContext& context, const uint8_t* cached, int64_t base, int64_t low, int64_t high,
                        float* scales) {
    const int64_t behind = context.block_size * context.head_dim;
    for (int64_t j = low; j < high;) {
        const int64_t offset = (base + j) % context.block_size;
        const int64_t count = smaller(context.block_size - offset, high - j);
        const float* from = reinterpret_cast<const float*>(block_at<int8_t>(context, cached, base + j) + behind) + offset;
        for (int64_t t = 0; t < count; t++) scales[j + t] = from[t];
        j += count;
    }
}

/// What the row sees of the chunk at `base`.
inline void look(const octavo::AttentionContext& context, int64_t position, int64_t base, octavo::AttentionState& row) {
    const int64_t earliest = context.window > 0 && position >= context.window ? position - context.window + 1 : 0;
    const int64_t from = earliest > base ? earliest - base : 0;
    const int64_t to = smaller(position + 1 - base, chunk_size);
    row.low = from < to ? static_cast<int32_t>(from) : 0;
    row.high = from < to ? static_cast<int32_t>(to) : 0;
}

template <typename Mode>
void attend_chunks(const octavo::AttentionRows& rows, const octavo::AttentionContext& context, bool has_scales, int64_t begin,
                   int64_t end) {
    const int64_t stride = octavo::attention_stride(context.head_dim);
    const bool in_place = Mode::reads_in_place(context, rows.count);
    alignas(64) float key_scales[chunk_size];
    alignas(64) float value_scales[chunk_size];
    const ChunkScales scales = has_scales ? ChunkScales{key_scales, value_scales} : ChunkScales{nullptr, nullptr};
    for (int64_t base = begin; base < end; base += chunk_size) {
        int64_t low = chunk_size;
        int64_t high = 0;
        for (int64_t r = 0; r < rows.count; r++) {
            octavo::AttentionState& row = rows.states[r];
            look(context, rows.positions[r], base, row);
            if (row.low >= row.high) continue;
            low = row.low < low ? row.low : low;
            high = row.high > high ? row.high : high;
        }
        if (low >= high) continue;
        if (has_scales) {
            load_scales(context, context.k, base, low, high, key_scales);
            load_scales(context, context.v, base, low, high, value_scales);
        }
        Ahead ahead;
        if constexpr (Mode::fetches_ahead) Mode::look_ahead(context, base, low, high, ahead);
        const auto attend_all = [&](const auto& keys, const auto& values) {
            for (int64_t r = 0; r < rows.count;) {
                const int64_t count = next_rows(rows.count - r);
                attend_rows(rows, context, r, count, keys, values, scales, ahead);
                r += count;
            }
        };
        if (in_place) {
            attend_all(typename Mode::Keys(context, base, low, high), typename Mode::Values(context, base, low, high));
        } else {
            Mode::load_chunk(context, base, low, high, rows.keys, rows.values, stride);
            attend_all(Mode::loaded_keys(rows, stride), Mode::loaded_values(rows, stride));
        }
    }
}

void attend_floats(octavo::KvDtype dtype, const octavo::AttentionRows& rows, const octavo::AttentionContext& context,
                   int64_t begin, int64_t end) {
    switch (dtype) {
        case octavo::KvDtype::f32:
            return attend_chunks<FloatMode<F32Element>>(rows, context, false, begin, end);
        case octavo::KvDtype::f16:
            return attend_chunks<FloatMode<F16Element>>(rows, context, false, begin, end);
        case octavo::KvDtype::bf16:
            return attend_chunks<FloatMode<Bf16Element>>(rows, context, false, begin, end);
        case octavo::KvDtype::int8:
            return attend_chunks<FloatMode<Int8Element>>(rows, context, true, begin, end);
    }
}

void copy_query(octavo::KvDtype, const float* query, int64_t head_dim, float* packed) {
    for (int64_t i = 0; i < head_dim; i += Vec::width) {
        store_up_to(packed + i, load_up_to(query + i, head_dim - i), head_dim - i);
    }
}

void fold(octavo::AttentionState& state, float* accumulated, const octavo::AttentionState& later,
          const float* later_accumulated, int64_t head_dim) {
    if (later.total == 0.0f) return;
    const float next = state.largest > later.largest ? state.largest : later.largest;
    float factors[2 * Vec::width];
    // A state that has seen nothing leaves -infinity - next, whose exponential is 0.
    store(factors, exponential(splat(state.largest - next)));
    store(factors + Vec::width, exponential(splat(later.largest - next)));
    const Vec before = splat(factors[0]);
    const Vec after = splat(factors[Vec::width]);
    for (int64_t i = 0; i < head_dim; i += Vec::width) {
        store(accumulated + i, multiply_add(load(later_accumulated + i), after, load(accumulated + i) * before));
    }
    state.total = state.total * factors[0] + later.total * factors[Vec::width];
    state.largest = next;
}

}  // namespace
