#pragma once
#include "attention_softmax.h"

// Decoding: a few rows of all heads over a chunk that they see whole, in about the order in which a paged cache lies in memory.
// The keys of all heads come block by block; then the softmax of all; then the values likewise. What is read in runs of a block
// arrives sooner than head by head, where a run is a block's part of one head. Every sum adds the same products in the same
// order as it does head by head, so that the bits are the same.
namespace octavo {
namespace {

/// Bytes that are fetched ahead of what is multiplied, beside the second of two blocks whose keys are multiplied together.
constexpr int64_t walk_lead = 8192;
constexpr int64_t walked_blocks = chunk_size / Vec::width;

/// Blocks of one vector of positions, the usual size; larger ones lie in longer runs head by head as well.
template <typename Mode>
inline bool can_walk(const AttentionContext& context) {
    return Mode::walks && !context.is_latent && context.block_size == Vec::width && context.head_dim % Vec::width == 0;
}

/// One head's keys in two blocks: row k is dimension k, vector j the positions of block j.
template <typename Element>
struct KeysOfTwo {
    using Type = typename Element::Type;
    const Type* blocks[2];
    Vec at(int64_t k, int64_t column) const { return Element::full(blocks[column] + k * Vec::width); }
};

/// One head's values in a block: row k is position k.
template <typename Element>
struct ValuesOfOne {
    using Type = typename Element::Type;
    const Type* first;
    int64_t stride;
    Vec at(int64_t k, int64_t column) const { return Element::full(first + k * stride + column * Vec::width); }
};

/// As multiply_tile, from k = 0 on, for H heads side by side, each with rows and a right-hand side of its own. Fetches so many
/// quarters of what it reads.
template <int R, int C, int H, int Quarters, typename Source>
inline void walk_tile(const float* a, int64_t lda, int64_t a_head, const Source (&b)[H], int64_t column, int64_t end, float* c,
                      int64_t ldc, int64_t c_head, bool accumulate, Ahead& ahead) {
    constexpr int64_t bytes = steps_per_fetch * H * C * Vec::width * static_cast<int64_t>(sizeof(typename Source::Type));
    Vec total[H][R][C];
    for (int h = 0; h < H; h++) {
        for (int r = 0; r < R; r++) {
            for (int j = 0; j < C; j++) {
                total[h][r][j] = accumulate ? load(c + h * c_head + r * ldc + (column + j) * Vec::width) : zero();
            }
        }
    }
    for (int64_t begin = 0; begin < end; begin += steps_per_fetch) {
        ahead.fetch(bytes / 64 * Quarters / 4);
        for (int64_t k = begin; k < begin + steps_per_fetch; k++) {
            for (int h = 0; h < H; h++) {
                Vec row[C];
                for (int j = 0; j < C; j++) row[j] = b[h].at(k, column + j);
                for (int r = 0; r < R; r++) {
                    const Vec factor = splat(a[h * a_head + r * lda + k]);
                    for (int j = 0; j < C; j++) total[h][r][j] = multiply_add(factor, row[j], total[h][r][j]);
                }
            }
        }
    }
    for (int h = 0; h < H; h++) {
        for (int r = 0; r < R; r++) {
            for (int j = 0; j < C; j++) store(c + h * c_head + r * ldc + (column + j) * Vec::width, total[h][r][j]);
        }
    }
}

/// A walk of R rows a head over the chunk at `base`.
template <typename Mode, int R>
class Walk {
public:
    Walk(const AttentionRows& rows, const AttentionContext& context, int64_t base)
        : rows_(rows),
          context_(context),
          blocks_(context.block_table + base / Vec::width),
          stride_(attention_stride(context.head_dim)) {
        look_ahead(base);
    }
    void run() {
        for (int64_t b = 0; b < walked_blocks; b += 2) {
            int64_t head = 0;
            for (; head + H <= context_.num_heads; head += H) score<H>(b, head);
            for (; head < context_.num_heads; head++) score<1>(b, head);
        }
        for (int64_t head = 0; head < context_.num_heads; head++) {
            soften<FloatArithmetic>(context_, R, scores(head), {nullptr, nullptr}, rows_.states + head * rows_.per_head,
                                    sums(head), stride_, ahead_, lines_at_once());
        }
        for (int64_t b = 0; b < walked_blocks; b++) {
            for (int64_t head = 0; head < context_.num_heads; head++) weigh(b, head);
        }
    }

private:
    using Keys = KeysOfTwo<typename Mode::Walked>;
    using Values = ValuesOfOne<typename Mode::Walked>;
    using Type = typename Keys::Type;
    /// Heads whose keys are multiplied side by side: enough sums at once, and no more than there are registers.
    static constexpr int H = R <= 4 ? 2 : 1;

    float* scores(int64_t head) const { return rows_.scores + head * R * chunk_size; }
    float* sums(int64_t head) const { return rows_.accumulated + head * rows_.per_head * stride_; }
    const Type* at(const uint8_t* start, int64_t block, int64_t head) const {
        return reinterpret_cast<const Type*>(start + blocks_[block] * context_.block_bytes + head * context_.head_bytes);
    }
    /// The quarter of the values' lines that products of values leave to the softmax.
    int64_t lines_at_once() const {
        const int64_t lines = chunk_size * context_.head_dim * static_cast<int64_t>(sizeof(Type)) / 64;
        return lines / 4 / (2 * R);
    }

    template <int Heads>
    void score(int64_t block, int64_t head) {
        Keys keys[Heads];
        for (int h = 0; h < Heads; h++) keys[h] = {{at(context_.k, block, head + h), at(context_.k, block + 1, head + h)}};
        const int64_t to_next = rows_.per_head * stride_;
        walk_tile<R, 2, Heads, 4>(rows_.queries + head * to_next, stride_, to_next, keys, 0, context_.head_dim,
                                  scores(head) + block * Vec::width, chunk_size, R * chunk_size, false, ahead_);
    }
    void weigh(int64_t block, int64_t head) {
        constexpr int C = R > tile_rows ? tile_vecs / 2 : tile_vecs;
        const Values values[1] = {{at(context_.v, block, head), context_.head_dim}};
        const float* factors = scores(head) + block * Vec::width;
        const int64_t vecs = stride_ / Vec::width;
        int64_t j = 0;
        for (; j + C <= vecs; j += C) {
            walk_tile<R, C, 1, 3>(factors, chunk_size, 0, values, j, Vec::width, sums(head), stride_, 0, true, ahead_);
        }
        for (; j < vecs; j++) {
            walk_tile<R, 1, 1, 3>(factors, chunk_size, 0, values, j, Vec::width, sums(head), stride_, 0, true, ahead_);
        }
    }
    /// As many bytes as the chunk has, which lie ahead of it in the order of reading.
    void look_ahead(int64_t base) {
        const int64_t run = context_.num_heads * context_.head_bytes;
        int64_t skip = run + walk_lead;
        int64_t left = 2 * walked_blocks * run;
        for (int64_t from = base; left > 0 && from + chunk_size <= context_.length; from += chunk_size) {
            for (int64_t part = 0; part < 2 * walked_blocks && left > 0 && ahead_.has_room(); part++) {
                const int32_t block = context_.block_table[from / Vec::width + part % walked_blocks];
                const uint8_t* start = (part < walked_blocks ? context_.k : context_.v) + block * context_.block_bytes;
                const int64_t skipped = smaller(skip, run);
                const int64_t bytes = smaller(run - skipped, left);
                skip -= skipped;
                left -= bytes;
                if (bytes > 0) ahead_.add(start + skipped, bytes);
            }
        }
    }

    const AttentionRows& rows_;
    const AttentionContext& context_;
    const int32_t* blocks_;
    int64_t stride_;
    Ahead ahead_;
};

/// Walks at most `most_rows` rows a head.
template <typename Mode, int R = 1>
void walk_chunk(const AttentionRows& rows, const AttentionContext& context, int64_t base) {
    if constexpr (Mode::walks && R <= most_rows) {
        if (rows.count != R) return walk_chunk<Mode, R + 1>(rows, context, base);
        Walk<Mode, R>(rows, context, base).run();
    }
}

}  // namespace
}  // namespace octavo
