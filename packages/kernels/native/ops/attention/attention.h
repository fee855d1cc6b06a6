#pragma once
#include <cstdint>
#include <vector>

#include "../../core/aligned_memory.h"
#include "../../core/thread_pool.h"
#include "attention_plan.h"
#include "../kernels.h"

namespace octavo {

/// Keys and values of one layer for all blocks; layout as in AttentionContext. Pages of memory are committed when first used.
struct KvLayer {
    AlignedMemory k;  // empty where a key is its value
    AlignedMemory v;
};

struct KvShape {
    KvDtype dtype;
    int64_t num_blocks;
    int64_t block_size;
    int64_t num_kv_heads;
    int64_t head_dim;
    /// A position's value is its key, which is kept once.
    bool is_latent = false;

    int64_t head_bytes() const {
        const int64_t elements = head_dim * block_size * static_cast<int64_t>(kv_element_bytes(dtype));
        return dtype == KvDtype::int8 ? elements + block_size * static_cast<int64_t>(sizeof(float)) : elements;
    }
    int64_t block_bytes() const { return num_kv_heads * head_bytes(); }
    /// Size of one layer's keys, or of its values.
    size_t layer_bytes() const { return static_cast<size_t>(num_blocks * block_bytes()); }
};

struct AttentionSpec {
    int64_t num_heads;
    int64_t num_kv_heads;
    int64_t head_dim;
    float scale;
    float soft_cap;
    int64_t window;
    /// [num_heads], scores that join each row's softmax and take nothing from any value; null when there are none.
    const float* sinks = nullptr;
    /// Positions after its own that a token sees, as far as the sequence has them after this step.
    int64_t look_ahead = 0;
    /// Takes no notice of the step's `last_seen`.
    bool is_causal = false;
    /// Columns of a value that go to `out`, the last ones; 0 means all.
    int64_t value_dim = 0;
    /// A token sees from the last multiple of it on; 0 means no such border.
    int64_t chunk = 0;
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

    /// Turns to another step, whose arrays must stay until the next one.
    void begin(const StepLayout& step);
    /// Writes the step's keys and values to their slots; of a latent cache the keys alone.
    void store(const KvShape& shape, const KvLayer& layer, Rows k, Rows v);
    /// Attends from the cache alone, so that a token sees the same bits whether its neighbours came in this step or before.
    void attend(const AttentionSpec& spec, const KvShape& shape, const KvLayer& layer, Rows q, Rows out);

private:
    struct Scratch;
    struct Job;

    const AttentionPlan& plan_for(const AttentionSpec& spec, const KvShape& shape);
    void gather(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch) const;
    void attend_unit(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch);
    void descend(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch, int32_t first, int32_t last,
                 int64_t chunk, int64_t end) const;
    void finish(const Job& job, const AttentionPlan::Unit& unit, const Scratch& scratch) const;
    Scratch scratch_of(int thread, int64_t rows, int64_t head_dim) const;

    ThreadPool& pool_;
    StepLayout step_{};
    /// Plans used by this step; the rest of the vector keeps its memory for other steps.
    size_t num_plans_ = 0;
    std::vector<AttentionPlan> plans_;
    std::vector<AlignedMemory> scratch_;
    /// Results of segments, `[head][partial row]`: attention_stride sums each, and behind them all states.
    AlignedMemory partials_;
    /// Spans of each split tile and first head of a unit that are still at work.
    std::vector<int32_t> running_spans_;
};

}  // namespace octavo
