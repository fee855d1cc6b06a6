#pragma once
#include "../../core/half.h"
#include "attention_kernel.h"
#include "store_kernel.h"

// Attention by VDPBF16PS: queries and softmax numerators are rounded to bf16 and multiplied in pairs, the sums stay f32. For
// caches whose elements are exact in bf16. A row's bits depend on it alone, as in f32.
namespace octavo {
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
    static uint16_t one(int8_t value) { return static_cast<uint16_t>(float_bits(static_cast<float>(value)) >> 16); }
};

/// Lane i holds first[i] in its low half and second[i] in its high half.
inline __m512i pair_up(__m256i first, __m256i second) {
    const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36,
                                           4, 35, 3, 34, 2, 33, 1, 32, 0);
    return _mm512_permutex2var_epi16(_mm512_castsi256_si512(first), order, _mm512_castsi256_si512(second));
}

/// Rows of pairs in memory.
struct PairRows {
    static constexpr bool fetches_ahead = false;
    using Arithmetic = Bf16Arithmetic;
    const float* rows;
    int64_t stride;
    __m512i at(int64_t k, int64_t column) const { return _mm512_loadu_si512(rows + k * stride + column * 16); }
};

/// A bf16 cache lies as it is multiplied where vectors fit its blocks: keys `[head_dim / 2][block_size][2]`, values
/// `[block_size / 2][head_dim][2]`.
inline bool lies_in_pairs(int64_t block_size, int64_t head_dim) { return block_size % 16 == 0 && head_dim % 16 == 0; }

/// Keys where they lie: row k is dimensions 2k and 2k + 1, vector j the positions from 16 * j on.
struct CachedKeyPairs {
    static constexpr bool fetches_ahead = true;
    using Arithmetic = Bf16Arithmetic;
    const uint16_t* vectors[chunk_size / 16];
    int64_t stride;

    CachedKeyPairs(const HeadContext& context, int64_t base, int64_t low, int64_t high)
        : stride(2 * context.block_size) {
        for (int64_t j = low / 16; 16 * j < high; j++) {
            const Place place = place_of(context, base + 16 * j);
            const uint8_t* block = context.k + place.block * context.block_bytes;
            vectors[j] = reinterpret_cast<const uint16_t*>(block) + 2 * place.offset;
        }
    }
    __m512i at(int64_t k, int64_t column) const { return _mm512_loadu_si512(vectors[column] + k * stride); }
};

/// Values where they lie: row k is positions 2k and 2k + 1, of which those outside [low, high) may be anything.
struct CachedValuePairs {
    static constexpr bool fetches_ahead = true;
    using Arithmetic = Bf16Arithmetic;
    const uint16_t* rows[chunk_size / 2];

    CachedValuePairs(const HeadContext& context, int64_t base, int64_t low, int64_t high) {
        for (int64_t j = low / 16 * 16; j < high; j += 16) {
            const Place place = place_of(context, base + j);
            const uint8_t* block = context.v + place.block * context.block_bytes;
            const uint16_t* first = reinterpret_cast<const uint16_t*>(block) + place.offset * context.head_dim;
            for (int64_t t = 0; t < 16; t += 2) rows[(j + t) / 2] = first + t * context.head_dim;
        }
    }
    __m512i at(int64_t k, int64_t column) const { return _mm512_loadu_si512(rows[k] + column * 32); }
};

/// For blocks and heads that vectors do not fit.
template <typename Pairs>
void load_singly(const HeadContext& context, int64_t base, int64_t low, int64_t high, float* keys, float* values,
                 int64_t stride) {
    using Type = typename Pairs::Type;
    const int64_t dim = context.head_dim;
    const auto put = [](float* lanes, int64_t lane, int64_t half, Type value) {
        const uint16_t bits = Pairs::one(value);
        __builtin_memcpy(reinterpret_cast<uint8_t*>(lanes + lane) + 2 * half, &bits, sizeof bits);
    };
    for (int64_t j = low; j < high; j++) {
        const int64_t offset = (base + j) % context.block_size;
        const Type* v = block_at<Type>(context, context.v, base + j) + offset * dim;
        const Type* k = context.is_latent ? v : block_at<Type>(context, context.k, base + j) + offset;
        const int64_t step = context.is_latent ? 1 : context.block_size;
        for (int64_t d = 0; d < dim; d++) put(keys + d / 2 * chunk_size, j, d % 2, k[d * step]);
        for (int64_t d = 0; d < dim; d++) put(values + j / 2 * stride, d, j % 2, v[d]);
    }
}

/// For blocks and heads that vectors fit, where keys are values.
template <typename Pairs>
void load_latent(const HeadContext& context, int64_t base, int64_t low, int64_t high, float* keys, float* values, int64_t stride) {
    const int64_t dim = context.head_dim;
    // A pair of dimensions is a lane of 32 bits.
    alignas(64) float lanes[8 * most_head_dim];
    const uint16_t* rows = reinterpret_cast<const uint16_t*>(lanes);
    for (int64_t j = low / 16 * 16; j < high; j += 16) {
        const int64_t offset = (base + j) % context.block_size;
        const typename Pairs::Type* v = block_at<typename Pairs::Type>(context, context.v, base + j) + offset * dim;
        for (int64_t i = 0; i < 16 * dim; i += 16) {
            _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + i / 2), Pairs::sixteen(v + i));
        }
        const int64_t later = next_position(context, base + j);
        prefetch(block_at<typename Pairs::Type>(context, context.next_v, later) + later % context.block_size * dim,
                 16 * dim * static_cast<int64_t>(sizeof(typename Pairs::Type)));
        for (int64_t t = 0; t < 16; t += 2) {
            const uint16_t* row = rows + t * dim;
            for (int64_t i = 0; i < dim; i += 16) {
                _mm512_storeu_si512(values + (j + t) / 2 * stride + i, pair_up(load_bits(row + i), load_bits(row + dim + i)));
            }
        }
        transpose(lanes, dim / 2, 0, 16, dim / 2, keys + j);
    }
}

/// Attention in bf16 over what `load_chunk` leaves: pairs of dimensions `[head_dim / 2][chunk_size]` and pairs of positions
/// `[chunk_size / 2][stride]`, in lanes of 32 bits.
struct LoadedPairs {
    static PairRows loaded_keys(const AttentionRows& rows, int64_t) { return {rows.keys, chunk_size}; }
    static PairRows loaded_values(const AttentionRows& rows, int64_t stride) { return {rows.values, stride}; }
};

/// Over a bf16 cache.
struct Bf16Mode : LoadedPairs {
    /// With half the arithmetic, and fetches in all of it, the order of heads is as fast.
    static constexpr bool walks = false;
    static constexpr bool fetches_ahead = true;
    using Keys = CachedKeyPairs;
    using Values = CachedValuePairs;
    static bool reads_in_place(const AttentionContext& context, int64_t) {
        return !context.is_latent && lies_in_pairs(context.block_size, context.head_dim);
    }
    static void load_chunk(const HeadContext& context, int64_t base, int64_t low, int64_t high, float* keys,
                           float* values, int64_t stride) {
        if (context.is_latent && lies_in_pairs(context.block_size, context.head_dim)) {
            return load_latent<Bf16Pairs>(context, base, low, high, keys, values, stride);
        }
        load_singly<Bf16Pairs>(context, base, low, high, keys, values, stride);
    }
    /// What of the next head, or chunk, corresponds to positions base + [low, high): its keys, then its values.
    static void look_ahead(const HeadContext& context, int64_t base, int64_t low, int64_t high, Ahead& ahead) {
        const int64_t row_bytes = 2 * context.head_dim;
        const int64_t end = smaller(base + high + context.next_offset, context.length);
        const uint8_t* const heads[] = {context.next_k, context.next_v};
        for (const uint8_t* head : heads) {
            for (int64_t j = base + low + context.next_offset; j < end && ahead.has_room();) {
                const Place place = place_of(context, j);
                const int64_t count = smaller(context.block_size - place.offset, end - j);
                ahead.add(head + place.block * context.block_bytes + place.offset * row_bytes, count * row_bytes);
                j += count;
            }
        }
    }
};

/// Over an int8 cache, which is always loaded.
struct Int8Mode : LoadedPairs {
    static constexpr bool walks = false;
    static constexpr bool fetches_ahead = false;
    using Keys = CachedKeyPairs;
    using Values = CachedValuePairs;
    static bool reads_in_place(const AttentionContext&, int64_t) { return false; }
    static void load_chunk(const HeadContext& context, int64_t base, int64_t low, int64_t high, float* keys,
                           float* values, int64_t stride) {
        const int64_t dim = context.head_dim;
        const int64_t block_size = context.block_size;
        if (block_size % 16 != 0 || dim % 16 != 0) {
            return load_singly<Int8Pairs>(context, base, low, high, keys, values, stride);
        }
        if (context.is_latent) return load_latent<Int8Pairs>(context, base, low, high, keys, values, stride);
        for (int64_t j = low / 16 * 16; j < high; j += 16) {
            const int64_t offset = (base + j) % block_size;
            const int8_t* k = block_at<int8_t>(context, context.k, base + j) + offset;
            const int8_t* v = block_at<int8_t>(context, context.v, base + j) + offset * dim;
            const int64_t later = next_position(context, base + j);
            prefetch(block_at<int8_t>(context, context.next_k, later) + later % block_size, 16 * dim);
            for (int64_t d = 0; d < dim; d += 2) {
                const __m512i pairs = pair_up(Int8Pairs::sixteen(k + d * block_size), Int8Pairs::sixteen(k + (d + 1) * block_size));
                _mm512_storeu_si512(keys + d / 2 * chunk_size + j, pairs);
            }
            prefetch(block_at<int8_t>(context, context.next_v, later) + later % block_size * dim, 16 * dim);
            for (int64_t t = 0; t < 16; t += 2) {
                for (int64_t i = 0; i < dim; i += 16) {
                    const __m512i pairs = pair_up(Int8Pairs::sixteen(v + t * dim + i), Int8Pairs::sixteen(v + (t + 1) * dim + i));
                    _mm512_storeu_si512(values + (j + t) / 2 * stride + i, pairs);
                }
            }
        }
    }
};

inline bool multiplies_in_bf16(KvDtype dtype) {
    return dtype == KvDtype::bf16 || dtype == KvDtype::int8;
}

void attend_pairs(KvDtype dtype, const AttentionRows& rows, const AttentionContext& context,
                  int64_t begin, int64_t end) {
    if (dtype == KvDtype::bf16) return attend_chunks<Bf16Mode>(rows, context, false, begin, end);
    if (dtype == KvDtype::int8) return attend_chunks<Int8Mode>(rows, context, true, begin, end);
    attend_floats(dtype, rows, context, begin, end);
}

void pack_query_pairs(KvDtype dtype, const float* query, int64_t head_dim, float* packed) {
    if (!multiplies_in_bf16(dtype)) return copy_query(dtype, query, head_dim, packed);
    for (int64_t i = 0; i < head_dim; i += 16) {
        const __m256i bits = (__m256i)_mm512_cvtneps_pbh(load_up_to(query + i, head_dim - i).lanes);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed + i / 2), bits);
    }
}

/// Dimensions 2i and 2i + 1 side by side.
inline void place_key(const KvRun& run, int64_t offset, const uint16_t* key) {
    uint8_t* keys = run.to_k + 4 * offset;
    for (int64_t d = 0; d < run.head_dim; d += 2) __builtin_memcpy(keys + 2 * d * run.block_size, key + d, 4);
}

/// Beside the value of the other token of its pair, which stays.
inline void place_value(const KvRun& run, int64_t offset, const uint16_t* value) {
    uint16_t* values = reinterpret_cast<uint16_t*>(run.to_v) + offset / 2 * 2 * run.head_dim + offset % 2;
    for (int64_t d = 0; d < run.head_dim; d++) values[2 * d] = value[d];
}

/// Both of a pair, the first of which lies at `offset`.
inline void place_values(const KvRun& run, int64_t offset, const uint16_t* first, const uint16_t* second) {
    uint16_t* values = reinterpret_cast<uint16_t*>(run.to_v) + offset * run.head_dim;
    for (int64_t d = 0; d < run.head_dim; d += 16) {
        _mm512_storeu_si512(values + 2 * d, pair_up(load_bits(first + d), load_bits(second + d)));
    }
}

void store_kv_pairs(KvDtype dtype, const KvRun& run) {
    if (dtype != KvDtype::bf16 || run.to_k == nullptr || !lies_in_pairs(run.block_size, run.head_dim)) return store_kv(dtype, run);
    alignas(64) uint16_t keys[2][most_head_dim];
    alignas(64) uint16_t values[2][most_head_dim];
    for (int64_t t = 0; t < run.count;) {
        const int64_t offset = run.offset + t;
        const int64_t count = offset % 2 == 0 && t + 1 < run.count ? 2 : 1;
        for (int64_t i = 0; i < count; i++) {
            narrow_row<Bf16Store>(run.k + (t + i) * run.k_stride, run.head_dim, keys[i]);
            narrow_row<Bf16Store>(run.v + (t + i) * run.v_stride, run.head_dim, values[i]);
            place_key(run, offset + i, keys[i]);
        }
        if (count == 2) {
            place_values(run, offset, values[0], values[1]);
        } else {
            place_value(run, offset, values[0]);
        }
        t += count;
    }
}

}  // namespace
}  // namespace octavo
