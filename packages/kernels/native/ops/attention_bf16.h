#pragma once
#include "../core/half.h"
#include "attention_kernel.h"

// Attention by VDPBF16PS: queries and softmax numerators are rounded to bf16 and multiplied in pairs, the sums stay f32. For
// caches whose elements are exact in bf16. A row's bits depend on it alone, as in f32.
namespace {

struct Bf16Arithmetic {
    /// Dimensions, or positions, that one factor covers.
    static constexpr int64_t step = 2;
    using Factors = __m512i;
    using Packed = __m512i;
    static Factors broadcast(const float* factor) {
        int32_t pair;
        __builtin_memcpy(&pair, factor, sizeof pair);
        return _mm512_set1_epi32(pair);
    }
    static Vec add_product(Factors factor, Packed row, Vec total) {
        return {_mm512_dpbf16_ps(total.lanes, (__m512bh)factor, (__m512bh)row)};
    }
    static Packed keep(Packed row, uint32_t mask) { return _mm512_and_si512(row, _mm512_set1_epi32(static_cast<int>(mask))); }
    static void pack(float* row, int64_t low, int64_t high) {
        for (int64_t j = low / 16 * 16; j < high; j += 16) {
            const __m256i bits = (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(row + j));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + j / 2), bits);
        }
    }
};

struct Bf16Pairs {
    using Type = uint16_t;
    static __m256i sixteen(const uint16_t* p) { return load_bits(p); }
    static uint16_t one(uint16_t value) { return value; }
};
/// Integers up to 8 bits are exact in bf16.
struct Int8Pairs {
    using Type = int8_t;
    static __m256i sixteen(const int8_t* p) { return (__m256i)_mm512_cvtneps_pbh(load_i8(p).lanes); }
    static uint16_t one(int8_t value) { return static_cast<uint16_t>(octavo::float_bits(static_cast<float>(value)) >> 16); }
};

/// Lane i holds first[i] in its low half and second[i] in its high half.
inline __m512i pair_up(__m256i first, __m256i second) {
    const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36,
                                           4, 35, 3, 34, 2, 33, 1, 32, 0);
    return _mm512_permutex2var_epi16(_mm512_castsi256_si512(first), order, _mm512_castsi256_si512(second));
}

/// Rows of pairs in memory.
struct PairRows {
    using Arithmetic = Bf16Arithmetic;
    const float* rows;
    int64_t stride;
    __m512i at(int64_t k, int64_t column) const { return _mm512_loadu_si512(rows + k * stride + column * 16); }
};

/// Keys where they lie: row k is dimensions 2k and 2k + 1, vector j the positions from 16 * j on.
struct CachedKeyPairs : CachedKeys<Bf16Element> {
    using Arithmetic = Bf16Arithmetic;
    using CachedKeys::CachedKeys;
    __m512i at(int64_t k, int64_t column) const {
        const uint16_t* first = vectors[column] + 2 * k * stride;
        __builtin_prefetch(ahead[column] + 2 * k * stride);
        return pair_up(load_bits(first), load_bits(first + stride));
    }
};

/// Values where they lie: row k is positions 2k and 2k + 1, of which those outside [low, high) may be anything.
struct CachedValuePairs {
    using Arithmetic = Bf16Arithmetic;
    const uint16_t* rows[chunk_size / 2];
    const uint16_t* ahead[chunk_size / 2];
    int64_t dim;

    CachedValuePairs(const octavo::AttentionContext& context, int64_t base, int64_t low, int64_t high) : dim(context.head_dim) {
        for (int64_t k = low / 2; 2 * k < high; k++) {
            const int64_t position = base + 2 * k;
            const int64_t later = next_position(context, position);
            rows[k] = block_at<uint16_t>(context, context.v, position) + position % context.block_size * dim;
            ahead[k] = block_at<uint16_t>(context, context.next_v, later) + later % context.block_size * dim;
        }
    }
    __m512i at(int64_t k, int64_t column) const {
        const uint16_t* first = rows[k] + column * 16;
        __builtin_prefetch(ahead[k] + column * 32);
        return pair_up(load_bits(first), load_bits(first + dim));
    }
};

/// Attention in bf16 over a cache of `Pairs`.
template <typename Pairs, bool in_place>
struct PairMode {
    using Type = typename Pairs::Type;
    using Keys = CachedKeyPairs;
    using Values = CachedValuePairs;
    static constexpr bool reads_in_place = in_place;

    static PairRows loaded_keys(const octavo::AttentionRows& rows, int64_t) { return {rows.keys, chunk_size}; }
    static PairRows loaded_values(const octavo::AttentionRows& rows, int64_t stride) { return {rows.values, stride}; }

    /// Pairs of dimensions `[head_dim / 2][chunk_size]` and pairs of positions `[chunk_size / 2][stride]`, in lanes of 32 bits.
    static void load_chunk(const octavo::AttentionContext& context, int64_t base, int64_t low, int64_t high, float* keys,
                           float* values, int64_t stride) {
        const int64_t dim = context.head_dim;
        const int64_t block_size = context.block_size;
        if (block_size % 16 != 0 || dim % 16 != 0) return load_singly(context, base, low, high, keys, values, stride);
        for (int64_t j = low / 16 * 16; j < high; j += 16) {
            const int64_t offset = (base + j) % block_size;
            const Type* k = block_at<Type>(context, context.k, base + j) + offset;
            const Type* v = block_at<Type>(context, context.v, base + j) + offset * dim;
            const int64_t later = next_position(context, base + j);
            const int64_t bytes = 16 * dim * static_cast<int64_t>(sizeof(Type));
            prefetch(block_at<Type>(context, context.next_k, later) + later % block_size, bytes);
            for (int64_t d = 0; d < dim; d += 2) {
                const __m512i pairs = pair_up(Pairs::sixteen(k + d * block_size), Pairs::sixteen(k + (d + 1) * block_size));
                _mm512_storeu_si512(keys + d / 2 * chunk_size + j, pairs);
            }
            prefetch(block_at<Type>(context, context.next_v, later) + later % block_size * dim, bytes);
            for (int64_t t = 0; t < 16; t += 2) {
                for (int64_t i = 0; i < dim; i += 16) {
                    const __m512i pairs = pair_up(Pairs::sixteen(v + t * dim + i), Pairs::sixteen(v + (t + 1) * dim + i));
                    _mm512_storeu_si512(values + (j + t) / 2 * stride + i, pairs);
                }
            }
        }
    }

    /// For blocks and heads that vectors do not fit.
    static void load_singly(const octavo::AttentionContext& context, int64_t base, int64_t low, int64_t high, float* keys,
                            float* values, int64_t stride) {
        const int64_t dim = context.head_dim;
        const auto put = [](float* lanes, int64_t lane, int64_t half, Type value) {
            const uint16_t bits = Pairs::one(value);
            __builtin_memcpy(reinterpret_cast<uint8_t*>(lanes + lane) + 2 * half, &bits, sizeof bits);
        };
        for (int64_t j = low; j < high; j++) {
            const int64_t offset = (base + j) % context.block_size;
            const Type* k = block_at<Type>(context, context.k, base + j) + offset;
            const Type* v = block_at<Type>(context, context.v, base + j) + offset * dim;
            for (int64_t d = 0; d < dim; d++) put(keys + d / 2 * chunk_size, j, d % 2, k[d * context.block_size]);
            for (int64_t d = 0; d < dim; d++) put(values + j / 2 * stride, d, j % 2, v[d]);
        }
    }
};

inline bool multiplies_in_bf16(octavo::KvDtype dtype) {
    return dtype == octavo::KvDtype::bf16 || dtype == octavo::KvDtype::int8;
}

void attend_pairs(octavo::KvDtype dtype, const octavo::AttentionRows& rows, const octavo::AttentionContext& context,
                  int64_t begin, int64_t end) {
    if (dtype == octavo::KvDtype::bf16) return attend_chunks<PairMode<Bf16Pairs, true>>(rows, context, false, begin, end);
    if (dtype == octavo::KvDtype::int8) return attend_chunks<PairMode<Int8Pairs, false>>(rows, context, true, begin, end);
    attend_floats(dtype, rows, context, begin, end);
}

void pack_query_pairs(octavo::KvDtype dtype, const float* query, int64_t head_dim, float* packed) {
    if (!multiplies_in_bf16(dtype)) return copy_query(dtype, query, head_dim, packed);
    for (int64_t i = 0; i < head_dim; i += 16) {
        const __m256i bits = (__m256i)_mm512_cvtneps_pbh(load_up_to(query + i, head_dim - i).lanes);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed + i / 2), bits);
    }
}

}  // namespace
