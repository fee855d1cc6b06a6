#pragma once
#include "attention_tiles.h"

// Keys and values of a chunk as f32, for caches of every type: where they lie, or brought to f32 first for many rows.
namespace octavo {
namespace {

constexpr int64_t chunk_size = attention_chunk;
/// More rows than this get each chunk brought to f32 first; the bits are the same.
constexpr int64_t most_rows_in_place = 2 * tile_rows;

struct F32Element {
    using Arithmetic = FloatArithmetic;
    using Type = float;
    static Vec full(const float* p) { return load(p); }
    static Vec some(const float* p, int count) { return load_some(p, count); }
};
struct F16Element {
    using Arithmetic = FloatArithmetic;
    using Type = uint16_t;
    static Vec full(const uint16_t* p) { return load_f16(p); }
    static Vec some(const uint16_t* p, int count) { return load_some_f16(p, count); }
};
struct Bf16Element {
    using Arithmetic = FloatArithmetic;
    using Type = uint16_t;
    static Vec full(const uint16_t* p) { return load_bf16(p); }
    static Vec some(const uint16_t* p, int count) { return load_some_bf16(p, count); }
};
struct Int8Element {
    using Arithmetic = FloatArithmetic;
    using Type = int8_t;
    static Vec full(const int8_t* p) { return load_i8(p); }
    static Vec some(const int8_t* p, int count) { return load_some_i8(p, count); }
};

/// One of a context's heads, as `k` and `v`, and what comes next, to be fetched meanwhile: a head, and how many positions later.
struct HeadContext : AttentionContext {
    const uint8_t* next_k;
    const uint8_t* next_v;
    int64_t next_offset;

    HeadContext(const AttentionContext& context, int64_t head) : AttentionContext(context) {
        const bool is_last = head + 1 == num_heads;
        const int64_t next = (is_last ? 0 : head + 1) * head_bytes;
        next_k = k + next;
        next_v = v + next;
        next_offset = is_last ? attention_chunk : 0;
        k += head * head_bytes;
        v += head * head_bytes;
    }
};

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Block and offset of a position.
struct Place {
    int64_t block;
    int64_t offset;
};
/// Positions and block sizes have 32 bits, whose division takes half the time of one of 64.
inline Place place_of(const AttentionContext& context, int64_t position) {
    const uint32_t index = static_cast<uint32_t>(position) / static_cast<uint32_t>(context.block_size);
    return {context.block_table[index], position - index * context.block_size};
}

/// Where `position` lies: its block's keys or values of type T, and the offset in the block.
template <typename T>
inline const T* block_at(const AttentionContext& context, const uint8_t* base, int64_t position) {
    return reinterpret_cast<const T*>(base + context.block_table[position / context.block_size] * context.block_bytes);
}

/// The position to prefetch after `position`; the same one at the end of the context.
inline int64_t next_position(const HeadContext& context, int64_t position) {
    return position + context.next_offset < context.length ? position + context.next_offset : position;
}

inline void prefetch(const void* begin, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const uint8_t*>(begin) + i);
}

/// Rows of f32 in memory.
struct FloatRows {
    static constexpr bool fetches_ahead = false;
    using Arithmetic = FloatArithmetic;
    const float* rows;
    int64_t stride;
    Vec at(int64_t k, int64_t column) const { return load(rows + k * stride + column * Vec::width); }
};

/// Where each `width` positions of a chunk begin in a head's keys or values, and their counterparts in what comes next. A block
/// holds whole ones.
template <typename Type>
struct CachedRuns {
    const Type* here[chunk_size / Vec::width];
    const Type* ahead[chunk_size / Vec::width];

    /// Positions lie `step` elements apart.
    CachedRuns(const HeadContext& context, const uint8_t* head, const uint8_t* next, int64_t base, int64_t low, int64_t high,
               int64_t step) {
        const auto at = [&](const uint8_t* start, int64_t position) {
            const Place place = place_of(context, position);
            return reinterpret_cast<const Type*>(start + place.block * context.block_bytes) + place.offset * step;
        };
        for (int64_t j = low / Vec::width; j * Vec::width < high; j++) {
            const int64_t position = base + j * Vec::width;
            here[j] = at(head, position);
            ahead[j] = at(next, next_position(context, position));
        }
    }
};

/// Keys where they lie in the cache: row k is dimension k, vector j holds the positions from j * width on. Reading a vector
/// fetches its counterpart of what comes next.
template <typename Element>
struct CachedKeys {
    static constexpr bool fetches_ahead = false;
    using Arithmetic = FloatArithmetic;
    CachedRuns<typename Element::Type> runs;
    int64_t stride;

    CachedKeys(const HeadContext& context, int64_t base, int64_t low, int64_t high)
        : runs(context, context.k, context.next_k, base, low, high, 1), stride(context.block_size) {}
    Vec at(int64_t k, int64_t column) const {
        __builtin_prefetch(runs.ahead[column] + k * stride);
        return Element::full(runs.here[column] + k * stride);
    }
};

/// Values where they lie in the cache: row k is position k.
template <typename Element>
struct CachedValues {
    static constexpr bool fetches_ahead = false;
    using Arithmetic = FloatArithmetic;
    CachedRuns<typename Element::Type> runs;
    int64_t stride;

    CachedValues(const HeadContext& context, int64_t base, int64_t low, int64_t high)
        : runs(context, context.v, context.next_v, base, low, high, context.head_dim), stride(context.head_dim) {}
    Vec at(int64_t k, int64_t column) const {
        const int64_t offset = k % Vec::width * stride + column * Vec::width;
        __builtin_prefetch(runs.ahead[k / Vec::width] + offset);
        return Element::full(runs.here[k / Vec::width] + offset);
    }
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

/// Columns [low, high) of `keys` `[width][chunk_size]` from rows of `values`, 16 rows of keys at a time, which stay in the first-level cache.
inline void transpose(const float* values, int64_t stride, int64_t low, int64_t high, int64_t width, float* keys) {
    for (int64_t d = 0; d < width; d += 16) {
        const int64_t count = smaller(16, width - d);
        for (int64_t j = low; j < high; j++) {
            for (int64_t i = 0; i < count; i++) keys[(d + i) * chunk_size + j] = values[j * stride + d + i];
        }
    }
}

/// Attention in f32 over a cache of `Element`.
template <typename Element>
struct FloatMode {
    static constexpr bool fetches_ahead = false;
    using Type = typename Element::Type;
    /// A few rows of two heads need as many registers as AVX-512 has; scales of an int8 cache lie between its heads.
    static constexpr bool walks = Vec::width == 16 && sizeof(Type) > 1;
    using Walked = Element;
    using Arithmetic = FloatArithmetic;
    using Keys = CachedKeys<Element>;
    using Values = CachedValues<Element>;
    static bool reads_in_place(const AttentionContext& context, int64_t count) {
        return !context.is_latent && count <= most_rows_in_place && context.block_size % Vec::width == 0 && context.head_dim % 16 == 0;
    }

    static FloatRows loaded_keys(const AttentionRows& rows, int64_t) { return {rows.keys, chunk_size}; }
    static FloatRows loaded_values(const AttentionRows& rows, int64_t stride) { return {rows.values, stride}; }

    /// Columns of `keys` `[head_dim][chunk_size]` and rows of `values` `[chunk_size][stride]` for context positions
    /// base + [low, high); what lies outside is left as it was and must not be used.
    static void load_chunk(const HeadContext& context, int64_t base, int64_t low, int64_t high, float* keys,
                           float* values, int64_t stride) {
        const int64_t dim = context.head_dim;
        for (int64_t j = low; j < high;) {
            const int64_t offset = (base + j) % context.block_size;
            const int64_t count = smaller(context.block_size - offset, high - j);
            const Type* k = block_at<Type>(context, context.k, base + j) + offset;
            const Type* v = block_at<Type>(context, context.v, base + j) + offset * dim;
            const int64_t later = next_position(context, base + j);
            const int64_t bytes = count * dim * static_cast<int64_t>(sizeof(Type));
            prefetch(block_at<Type>(context, context.next_k, later), bytes);
            for (int64_t d = 0; d < dim && !context.is_latent; d++) {
                widen<Element>(k + d * context.block_size, keys + d * chunk_size + j, count);
            }
            prefetch(block_at<Type>(context, context.next_v, later), bytes);
            for (int64_t t = 0; t < count; t++) widen<Element>(v + t * dim, values + (j + t) * stride, dim);
            j += count;
        }
        if (context.is_latent) transpose(values, stride, low, high, dim, keys);
    }
};

}  // namespace
}  // namespace octavo
