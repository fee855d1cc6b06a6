#pragma once
#include "row_kernels.h"

// Attention of one tile: online softmax (Milakov and Gimelshein, 2018) over chunks of `attention_chunk` positions in
// ascending order. A chunk of K and V is brought to f32 once for all rows of the tile; a row then uses exactly the
// positions that it sees, in ascending order, so that it never feels its neighbours.
namespace {

constexpr int64_t chunk_size = octavo::attention_chunk;
/// Rows and vectors of a register tile: all accumulators, a row of b and one broadcast stay in registers.
constexpr int tile_rows = Vec::width == 16 ? 6 : 4;
constexpr int tile_vecs = Vec::width == 16 ? 4 : 2;

template <int N>
struct Count {
    static constexpr int value = N;
};

/// c[r][:] = (accumulate ? c[r][:] : 0) + sum over k in [begin, end), ascending, of a[r][k] * b(k)[:]
template <int R, int C, typename Source>
inline void update(const float* a, int64_t lda, const Source& b, int64_t column, int64_t begin, int64_t end, float* c,
                   int64_t ldc, bool accumulate) {
    Vec total[R][C];
    for (int r = 0; r < R; r++) {
        for (int j = 0; j < C; j++) total[r][j] = accumulate ? load(c + r * ldc + j * Vec::width) : zero();
    }
    for (int64_t k = begin; k < end; k++) {
        Vec row[C];
        for (int j = 0; j < C; j++) row[j] = b.at(k, column + j);
        for (int r = 0; r < R; r++) {
            const Vec factor = splat(a[r * lda + k]);
            for (int j = 0; j < C; j++) total[r][j] = multiply_add(factor, row[j], total[r][j]);
        }
    }
    for (int r = 0; r < R; r++) {
        for (int j = 0; j < C; j++) store(c + r * ldc + j * Vec::width, total[r][j]);
    }
}

template <int R, typename Source>
inline void update_rows(const float* a, int64_t lda, const Source& b, int64_t begin, int64_t end, float* c, int64_t ldc,
                        int64_t vecs, bool accumulate) {
    int64_t j = 0;
    for (; j + tile_vecs <= vecs; j += tile_vecs) {
        update<R, tile_vecs>(a, lda, b, j, begin, end, c + j * Vec::width, ldc, accumulate);
    }
    for (; j < vecs; j++) update<R, 1>(a, lda, b, j, begin, end, c + j * Vec::width, ldc, accumulate);
}

/// `update` for any number of rows; each row's sums are its own.
template <typename Source>
inline void update_all(int64_t rows, const float* a, int64_t lda, const Source& b, int64_t begin, int64_t end, float* c,
                       int64_t ldc, int64_t vecs, bool accumulate) {
    int64_t r = 0;
    const auto take = [&](auto count) {
        constexpr int R = decltype(count)::value;
        for (; r + R <= rows; r += R) {
            update_rows<R>(a + r * lda, lda, b, begin, end, c + r * ldc, ldc, vecs, accumulate);
        }
    };
    if (tile_rows > 4) take(Count<tile_rows>{});
    take(Count<4>{});
    take(Count<2>{});
    take(Count<1>{});
}

struct F32Element {
    using Type = float;
    static Vec full(const float* p) { return load(p); }
    static Vec some(const float* p, int count) { return load_some(p, count); }
};
struct F16Element {
    using Type = uint16_t;
    static Vec full(const uint16_t* p) { return load_f16(p); }
    static Vec some(const uint16_t* p, int count) { return load_some_f16(p, count); }
};
struct Bf16Element {
    using Type = uint16_t;
    static Vec full(const uint16_t* p) { return load_bf16(p); }
    static Vec some(const uint16_t* p, int count) { return load_some_bf16(p, count); }
};

template <typename Element>
inline void widen(const typename Element::Type* from, float* to, int64_t count) {
    int64_t i = 0;
    for (; i + Vec::width <= count; i += Vec::width) store(to + i, Element::full(from + i));
    if (i < count) {
        const int left = static_cast<int>(count - i);
        store_some(to + i, Element::some(from + i, left), left);
    }
}

// What `update` multiplies with: vector `column` of row k.

/// Rows of f32 in memory.
struct FloatRows {
    const float* rows;
    int64_t stride;
    Vec at(int64_t k, int64_t column) const { return load(rows + k * stride + column * Vec::width); }
};

/// Keys of a chunk where they lie in the cache: row k is dimension k, vector j holds the positions from j * width on.
template <typename Element>
struct CachedKeys {
    const typename Element::Type* vectors[chunk_size / Vec::width];
    int64_t stride;
    Vec at(int64_t k, int64_t column) const { return Element::full(vectors[column] + k * stride); }
};

/// Values of a chunk where they lie in the cache: row k is position k.
template <typename Element>
struct CachedValues {
    const typename Element::Type* rows[chunk_size];
    Vec at(int64_t k, int64_t column) const { return Element::full(rows[k] + column * Vec::width); }
};

/// Columns of `keys` `[head_dim][chunk_size]` and rows of `values` `[chunk_size][padded_dim]` for context positions
/// base + [low, high); what lies outside is left as it was and must not be used.
template <typename Element>
void load_chunk(const octavo::AttentionTile& tile, int64_t base, int64_t low, int64_t high, float* keys, float* values,
                int64_t padded_dim) {
    using Type = typename Element::Type;
    for (int64_t j = low; j < high;) {
        const int64_t position = base + j;
        const int64_t offset = position % tile.block_size;
        const int64_t in_block = tile.block_size - offset;
        const int64_t count = in_block < high - j ? in_block : high - j;
        const int64_t block = tile.block_table[position / tile.block_size];
        const Type* k = static_cast<const Type*>(tile.k) + block * tile.block_stride + offset;
        const Type* v = static_cast<const Type*>(tile.v) + block * tile.block_stride + offset * tile.head_dim;
        for (int64_t d = 0; d < tile.head_dim; d++) widen<Element>(k + d * tile.block_size, keys + d * chunk_size + j, count);
        for (int64_t t = 0; t < count; t++) widen<Element>(v + t * tile.head_dim, values + (j + t) * padded_dim, tile.head_dim);
        j += count;
    }
}

struct RowState {
    float largest;
    float total;
    /// Positions of the current chunk that the row sees.
    int32_t low;
    int32_t high;
};

/// Turns a row of dot products into softmax numerators, and rescales what the row has accumulated.
inline void soften(const octavo::AttentionTile& tile, float* scores, RowState& row, float* accumulated,
                   int64_t padded_dim) {
    constexpr int64_t w = Vec::width;
    const Vec factor = splat(tile.scale);
    const Vec cap = splat(tile.soft_cap);
    const Vec hidden = splat(-__builtin_inff());
    const int64_t first = row.low / w * w;
    Vec best = hidden;
    for (int64_t j = first; j < row.high; j += w) {
        Vec s = load(scores + j) * factor;
        if (tile.soft_cap != 0.0f) s = cap * hyperbolic_tangent(s / cap);
        if (j < row.low || j + w > row.high) {
            const int64_t above = row.high - j < w ? row.high - j : w;
            const int64_t below = row.low - j > 0 ? row.low - j : 0;
            const Lanes visible = static_cast<Lanes>((uint64_t{1} << above) - (uint64_t{1} << below));
            s = select(visible, s, hidden);
        }
        store(scores + j, s);
        best = maximum(best, s);
    }
    const float previous = row.largest;
    const float in_chunk = largest(best);
    const float next = previous > in_chunk ? previous : in_chunk;
    const Vec shift = splat(next);
    Vec total = zero();
    for (int64_t j = first; j < row.high; j += w) {
        const Vec p = exponential(load(scores + j) - shift);
        store(scores + j, p);
        total = total + p;
    }
    // The first chunk leaves -infinity - next, whose exponential is 0.
    float rescale[Vec::width];
    store(rescale, exponential(splat(previous - next)));
    row.largest = next;
    row.total = row.total * rescale[0] + sum(total);
    if (rescale[0] != 1.0f) scale(accumulated, rescale[0], padded_dim);
}

/// accumulated[r] += sum over the row's own positions of p * v: together where the rows agree, alone where they do not.
template <typename Source>
void weigh_values(int64_t rows, const RowState* states, const float* scores, const Source& values, int64_t padded_dim,
                  float* accumulated) {
    const int64_t vecs = padded_dim / Vec::width;
    for (int64_t begin = 0; begin < rows;) {
        const int64_t end = rows - begin < tile_rows ? rows : begin + tile_rows;
        int64_t low = 0;
        int64_t high = chunk_size;
        for (int64_t r = begin; r < end; r++) {
            low = states[r].low > low ? states[r].low : low;
            high = states[r].high < high ? states[r].high : high;
        }
        const float* p = scores + begin * chunk_size;
        float* c = accumulated + begin * padded_dim;
        if (low < high) {
            for (int64_t r = begin; r < end; r++) {
                update_rows<1>(scores + r * chunk_size, chunk_size, values, states[r].low, low,
                               accumulated + r * padded_dim, padded_dim, states[r].low < low ? vecs : 0, true);
            }
            update_all(end - begin, p, chunk_size, values, low, high, c, padded_dim, vecs, true);
        }
        for (int64_t r = begin; r < end; r++) {
            const int64_t from = low < high ? high : states[r].low;
            update_rows<1>(scores + r * chunk_size, chunk_size, values, from, states[r].high, accumulated + r * padded_dim,
                           padded_dim, from < states[r].high ? vecs : 0, true);
        }
        begin = end;
    }
}

/// Positions [low, high) of a chunk, seen through the block table.
template <typename Element>
void locate_keys(const octavo::AttentionTile& tile, int64_t base, int64_t high, CachedKeys<Element>& keys) {
    for (int64_t j = 0; j < high; j += Vec::width) {
        const int64_t block = tile.block_table[(base + j) / tile.block_size];
        keys.vectors[j / Vec::width] = static_cast<const typename Element::Type*>(tile.k) + block * tile.block_stride +
                                       (base + j) % tile.block_size;
    }
    keys.stride = tile.block_size;
}

template <typename Element>
void locate_values(const octavo::AttentionTile& tile, int64_t base, int64_t low, int64_t high, CachedValues<Element>& values) {
    for (int64_t j = low; j < high; j++) {
        const int64_t block = tile.block_table[(base + j) / tile.block_size];
        values.rows[j] = static_cast<const typename Element::Type*>(tile.v) + block * tile.block_stride +
                         (base + j) % tile.block_size * tile.head_dim;
    }
}

/// Scores and softmax numerators of one chunk.
template <typename Source>
void score_chunk(const octavo::AttentionTile& tile, int64_t base, int64_t high, const Source& keys, const float* queries,
                 float* scores, RowState* states, float* accumulated, int64_t padded_dim) {
    const int64_t rows = tile.num_tokens * tile.group;
    update_all(rows, queries, tile.head_dim, keys, 0, tile.head_dim, scores, chunk_size,
               (high + Vec::width - 1) / Vec::width, false);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t position = tile.first_position + r / tile.group;
        const int64_t earliest = tile.window > 0 && position >= tile.window ? position - tile.window + 1 : 0;
        const int64_t from = earliest > base ? earliest - base : 0;
        const int64_t to = position + 1 - base < chunk_size ? position + 1 - base : chunk_size;
        if (from >= to) {
            states[r].low = states[r].high = 0;
            continue;
        }
        states[r].low = static_cast<int32_t>(from);
        states[r].high = static_cast<int32_t>(to);
        soften(tile, scores + r * chunk_size, states[r], accumulated + r * padded_dim, padded_dim);
    }
}

template <typename Element>
void attend_tile(const octavo::AttentionTile& tile) {
    const int64_t dim = tile.head_dim;
    const int64_t padded_dim = (dim + 15) / 16 * 16;
    const int64_t rows = tile.num_tokens * tile.group;
    float* keys = tile.scratch;
    float* values = keys + chunk_size * dim;
    float* queries = values + chunk_size * padded_dim;
    float* scores = queries + rows * dim;
    float* accumulated = scores + rows * chunk_size;
    RowState* states = reinterpret_cast<RowState*>(accumulated + rows * padded_dim);

    for (int64_t r = 0; r < rows; r++) {
        const float* q = tile.q + r / tile.group * tile.q_stride + r % tile.group * dim;
        for (int64_t i = 0; i < dim; i += Vec::width) store_up_to(queries + r * dim + i, load_up_to(q + i, dim - i), dim - i);
        for (int64_t i = 0; i < padded_dim; i += Vec::width) store(accumulated + r * padded_dim + i, zero());
        states[r] = {-__builtin_inff(), 0.0f, 0, 0};
    }
    for (int64_t t = 0; t < chunk_size; t++) {
        for (int64_t i = dim; i < padded_dim; i++) values[t * padded_dim + i] = 0.0f;
    }

    // Few rows read the cache where it lies; for many it pays to bring a chunk to f32 first. The bits are the same.
    const bool direct = rows <= 2 * tile_rows && tile.block_size % Vec::width == 0 && dim % Vec::width == 0;
    const int64_t last_position = tile.first_position + tile.num_tokens - 1;
    const int64_t oldest = tile.window > 0 && tile.first_position >= tile.window ? tile.first_position - tile.window + 1 : 0;
    for (int64_t base = oldest / chunk_size * chunk_size; base <= last_position; base += chunk_size) {
        const int64_t low = oldest > base ? oldest - base : 0;
        const int64_t high = last_position + 1 - base < chunk_size ? last_position + 1 - base : chunk_size;
        if (direct) {
            CachedKeys<Element> cached_keys;
            CachedValues<Element> cached_values;
            locate_keys(tile, base, high, cached_keys);
            locate_values(tile, base, low, high, cached_values);
            score_chunk(tile, base, high, cached_keys, queries, scores, states, accumulated, padded_dim);
            weigh_values(rows, states, scores, cached_values, padded_dim, accumulated);
        } else {
            load_chunk<Element>(tile, base, low, high, keys, values, padded_dim);
            score_chunk(tile, base, high, FloatRows{keys, chunk_size}, queries, scores, states, accumulated, padded_dim);
            weigh_values(rows, states, scores, FloatRows{values, padded_dim}, padded_dim, accumulated);
        }
    }

    for (int64_t r = 0; r < rows; r++) {
        float* out = tile.out + r / tile.group * tile.out_stride + r % tile.group * dim;
        const Vec inverse = splat(1.0f / states[r].total);
        for (int64_t i = 0; i < dim; i += Vec::width) {
            store_up_to(out + i, load(accumulated + r * padded_dim + i) * inverse, dim - i);
        }
    }
}

void attend(octavo::KvDtype dtype, const octavo::AttentionTile& tile) {
    switch (dtype) {
        case octavo::KvDtype::f32:
            return attend_tile<F32Element>(tile);
        case octavo::KvDtype::f16:
            return attend_tile<F16Element>(tile);
        case octavo::KvDtype::bf16:
            return attend_tile<Bf16Element>(tile);
    }
}

}  // namespace
