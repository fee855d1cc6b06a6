#pragma once
#include <cstdint>
#include <vector>

#include "../core/aligned_memory.h"
#include "../core/thread_pool.h"
#include "kernels.h"

namespace octavo {

/// Keys and values of one layer for all blocks; layout as in AttentionTile. Pages of memory are committed when first used.
struct KvLayer {
    AlignedMemory k;
    AlignedMemory v;
};

struct KvShape {
    KvDtype dtype;
    int64_t num_blocks;
    int64_t block_size;
    int64_t num_kv_heads;
    int64_t head_dim;

    int64_t head_elements() const { return head_dim * block_size; }
    int64_t block_elements() const { return num_kv_heads * head_elements(); }
};

/// Which tokens belong to which sequence and where its context lies; see StepPlan in backend.ts.
struct StepLayout {
    int64_t num_tokens;
    int64_t num_sequences;
    const int32_t* slots;
    const int32_t* query_starts;
    const int32_t* context_lengths;
    const int32_t* block_tables;
    const int32_t* block_table_starts;
};

struct AttentionSpec {
    int64_t num_heads;
    int64_t num_kv_heads;
    int64_t head_dim;
    float scale;
    float soft_cap;
    int64_t window;
};

/// A column range of an activation buffer.
struct Rows {
    float* data;
    int64_t stride;

    float* row(int64_t r) const { return data + r * stride; }
};

/// Paged attention over a step that mixes prefill and decode.
class Attention {
public:
    explicit Attention(ThreadPool& pool);

    /// Writes the step's keys and values to their slots.
    void store(const KvShape& shape, const KvLayer& layer, const StepLayout& step, Rows k, Rows v);
    /// Attends from the cache alone, so that a token sees the same bits whether its neighbours came in this step or before.
    void attend(const AttentionSpec& spec, const KvShape& shape, const KvLayer& layer, const StepLayout& step, Rows q,
                Rows out);

private:
    struct Tile {
        int32_t sequence;
        int32_t first_token;
        int32_t num_tokens;
    };
    void cut_tiles(const StepLayout& step, int64_t tokens_per_tile);

    ThreadPool& pool_;
    std::vector<Tile> tiles_;
    std::vector<AlignedMemory> scratch_;
};

}  // namespace octavo
