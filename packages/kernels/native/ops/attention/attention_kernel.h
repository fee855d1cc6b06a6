#pragma once
#include "attention_walk.h"

// Attention of rows over chunks of their context, ascending. A row uses exactly the positions that it sees, so that its bits do not
// depend on the rows computed with it.
namespace octavo {
namespace {

/// Each row of `source` with only the bits in `mask`.
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
void weigh_values(int64_t count, const AttentionState* states, const float* scores, const Source& values,
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
void attend_rows(const AttentionRows& rows, const AttentionContext& context, int64_t first, int64_t count,
                 const Keys& keys, const Values& values, const ChunkScales& scales, Ahead& ahead) {
    const int64_t stride = attention_stride(context.head_dim);
    AttentionState* states = rows.states + first;
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
    // Half of what a chunk of bf16 takes; the products fetch the other half.
    const int64_t lines_at_once = (stride + count - 1) / count;
    soften<typename Values::Arithmetic>(context, count, scores, scales, states, accumulated, stride, ahead, lines_at_once);
    weigh_values(count, states, scores, values, stride, accumulated, ahead);
}

/// Copies the scales of positions base + [low, high).
inline void load_scales(const HeadContext& context, const uint8_t* cached, int64_t base, int64_t low, int64_t high,
                        float* scales) {
    const int64_t behind = context.block_size * context.head_dim;
    for (int64_t j = low; j < high;) {
        const int64_t offset = (base + j) % context.block_size;
        const int64_t count = smaller(context.block_size - offset, high - j);
        const int8_t* from = block_at<int8_t>(context, cached, base + j) + behind + offset * static_cast<int64_t>(sizeof(float));
        __builtin_memcpy(scales + j, from, static_cast<size_t>(count) * sizeof(float));
        j += count;
    }
}

/// What the row sees of the chunk at `base`.
inline void look(const AttentionContext& context, int64_t position, int64_t end, int64_t base, AttentionState& row) {
    const int64_t in_window = context.window > 0 && position >= context.window ? position - context.window + 1 : 0;
    const int64_t earliest = context.chunk > 0 ? position - position % context.chunk : in_window;
    const int64_t from = earliest > base ? earliest - base : 0;
    const int64_t to = smaller(end - base, chunk_size);
    row.low = from < to ? static_cast<int32_t>(from) : 0;
    row.high = from < to ? static_cast<int32_t>(to) : 0;
}

/// One head's part of the chunk at `base`, of which its rows see positions [low, high).
template <typename Mode>
void attend_head(const AttentionRows& rows, const HeadContext& context, bool has_scales, int64_t base, int64_t low,
                 int64_t high) {
    alignas(64) float key_scales[chunk_size];
    alignas(64) float value_scales[chunk_size];
    const ChunkScales scales = has_scales ? ChunkScales{key_scales, value_scales} : ChunkScales{nullptr, nullptr};
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
    if (Mode::reads_in_place(context, rows.count)) {
        attend_all(typename Mode::Keys(context, base, low, high), typename Mode::Values(context, base, low, high));
    } else {
        const int64_t stride = attention_stride(context.head_dim);
        Mode::load_chunk(context, base, low, high, rows.keys, rows.values, stride);
        attend_all(Mode::loaded_keys(rows, stride), Mode::loaded_values(rows, stride));
    }
}

template <typename Mode>
void attend_chunks(const AttentionRows& rows, const AttentionContext& context, bool has_scales, int64_t begin,
                   int64_t end) {
    const int64_t stride = attention_stride(context.head_dim);
    const bool walks = rows.count <= most_rows && can_walk<Mode>(context);
    for (int64_t base = begin; base < end; base += chunk_size) {
        int64_t low = chunk_size;
        int64_t high = 0;
        bool see_all = true;
        for (int64_t r = 0; r < rows.count; r++) {
            AttentionState& row = rows.states[r];
            look(context, rows.positions[r], rows.ends[r], base, row);
            for (int64_t head = 1; head < context.num_heads; head++) {
                rows.states[head * rows.per_head + r].low = row.low;
                rows.states[head * rows.per_head + r].high = row.high;
            }
            see_all = see_all && row.low == 0 && row.high == chunk_size;
            if (row.low >= row.high) continue;
            low = row.low < low ? row.low : low;
            high = row.high > high ? row.high : high;
        }
        if (low >= high) continue;
        if (walks && see_all) {
            walk_chunk<Mode>(rows, context, base);
            continue;
        }
        for (int64_t head = 0; head < context.num_heads; head++) {
            AttentionRows of_head = rows;
            of_head.queries += head * rows.per_head * stride;
            of_head.accumulated += head * rows.per_head * stride;
            of_head.states += head * rows.per_head;
            attend_head<Mode>(of_head, HeadContext(context, head), has_scales, base, low, high);
        }
    }
}

void attend_floats(KvDtype dtype, const AttentionRows& rows, const AttentionContext& context,
                   int64_t begin, int64_t end) {
    switch (dtype) {
        case KvDtype::f32:
            return attend_chunks<FloatMode<F32Element>>(rows, context, false, begin, end);
        case KvDtype::f16:
            return attend_chunks<FloatMode<F16Element>>(rows, context, false, begin, end);
        case KvDtype::bf16:
            return attend_chunks<FloatMode<Bf16Element>>(rows, context, false, begin, end);
        case KvDtype::int8:
            return attend_chunks<FloatMode<Int8Element>>(rows, context, true, begin, end);
    }
}

void copy_query(KvDtype, const float* query, int64_t head_dim, float* packed) {
    for (int64_t i = 0; i < head_dim; i += Vec::width) {
        store_up_to(packed + i, load_up_to(query + i, head_dim - i), head_dim - i);
    }
}

void fold(AttentionState& state, float* accumulated, const AttentionState& later,
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
}  // namespace octavo
