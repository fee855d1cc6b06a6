#pragma once
#include <cstdint>
#include <vector>

#include "../../core/aligned_memory.h"
#include "../../core/thread_pool.h"
#include "../attention/attention.h"
#include "recurrent_kernels.h"
#include "state_cache.h"

namespace octavo {

/// A causal convolution of each channel by itself. A slot keeps the latest inputs, `taps - 1 + max_draft` of them, each at its
/// position modulo that number, so that inputs of rejected draft tokens are overwritten in place.
struct ConvolutionSpec {
    int64_t state;
    int64_t width;
    int64_t taps;
    const float* weight;  // [taps][width]
    const float* bias;  // may be null
    bool silu;
};

/// Heads with a matrix of state each. A slot keeps the state after its tokens, `[head][tile][key_dim][state_tile]`, and behind it,
/// for each draft token at its position modulo max_draft, the keys, values and gates that lead to the state after it.
struct RecurrenceSpec {
    int64_t state;
    int64_t num_heads;
    int64_t num_key_heads;
    int64_t key_dim;
    int64_t value_dim;
    /// The delta rule over normalised queries and keys; else the plain sum of Mamba-2.
    bool is_delta;
    /// Head h has key head h % num_key_heads, not h / (num_heads / num_key_heads).
    bool is_tiled;
    const float* rates;  // [num_heads]; decay = e^(-rate softplus(input + bias))
    const float* biases;
    const float* skips;  // [num_heads], times v joins the output; may be null
    float least_step;  // bounds of the softplus, with the plain sum
    float most_step;

    int64_t num_tiles() const { return (value_dim + state_tile - 1) / state_tile; }
    int64_t tile_floats() const { return key_dim * state_tile; }
    int64_t key_width() const { return num_key_heads * key_dim; }
    int64_t value_width() const { return num_heads * value_dim; }
    int64_t key_head(int64_t head) const { return is_tiled ? head % num_key_heads : head / (num_heads / num_key_heads); }
};

struct RecurrenceRows {
    Rows q;
    Rows k;
    Rows v;
    Rows decay;  // [num_heads]
    Rows strength;  // [num_heads]; the same as `decay` with the plain sum
    Rows out;
};

/// Recurrent ops over a step. Every sequence's tokens are taken in order, each from the state the one before it left, so that
/// neither chunks nor neighbours nor threads change a bit; threads share out heads, columns and channels.
class StateRunner {
public:
    explicit StateRunner(ThreadPool& pool) : pool_(pool) {}

    /// Turns to another step, whose arrays must stay until the next one.
    void begin(const StepLayout& step, const StateLayout& layout, const StateCache& cache);
    void convolve(const ConvolutionSpec& spec, Rows in, Rows out);
    /// Throws std::bad_alloc.
    void recur(const RecurrenceSpec& spec, const RecurrenceRows& rows);

private:
    struct Snapshot {
        int64_t position;
        int64_t slot;
    };
    struct Sequence {
        int64_t first_row;
        /// Position of the first row, and that behind the last.
        int64_t first;
        int64_t context;
        /// Positions that the state in the source, and then that in the slot, stands for.
        int64_t start;
        int64_t end;
        int64_t slot;
        int64_t source;  // below 0 when it starts from nothing
        std::vector<Snapshot> snapshots;
    };
    struct Prepared;

    void convolve_channels(const ConvolutionSpec& spec, const Sequence& sequence, Rows in, Rows out, int64_t channel, int64_t count,
                           std::vector<const float*>& inputs) const;
    void prepare(const RecurrenceSpec& spec, const RecurrenceRows& rows, const Prepared& prepared) const;
    void recur_tile(const RecurrenceSpec& spec, const Sequence& sequence, const Prepared& prepared, int64_t head, int64_t tile,
                    float* scratch) const;
    void keep_drafts(const RecurrenceSpec& spec, const Sequence& sequence, const Prepared& prepared) const;

    ThreadPool& pool_;
    const StateCache* cache_ = nullptr;
    int64_t num_rows_ = 0;
    size_t num_sequences_ = 0;
    std::vector<Sequence> sequences_;
    AlignedMemory prepared_;
    std::vector<std::vector<float>> scratch_;
    std::vector<std::vector<const float*>> inputs_;
    std::vector<float> zeros_;
};

}  // namespace octavo
