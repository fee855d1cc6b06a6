#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../core/enumeration.h"
#include "../ops/attention/attention.h"
#include "../ops/recurrent/state_cache.h"
#include "../sampling/row_sampler.h"

namespace octavo {

struct Adapter;

OCTAVO_ENUMERATION(OutputKind, sample, score, hidden);
OCTAVO_ENUMERATION(Pooling, none, mean, max);

/// What to do with one output row; see OutputRow in backend.ts.
struct OutputRow {
    OutputKind kind;
    int32_t token;   // index of the row's token in the step
    int32_t target;  // score rows
    Pooling pooling;
    int32_t num_pooled;  // rows up to `token` that `gather` takes together
    bool wants_logprobs;
    int32_t num_top;  // 0..vocab
    int32_t first_id;  // into StepPlan::logprob_ids
    int32_t num_ids;
    /// The token at `token` is a draft token: the row is sampled only if the row before sampled that token.
    bool after_draft;
    /// Digest of the row's raw logits, by their bits.
    bool wants_digest;
    RowSampling sampling;
};

/// One step, with copies of everything it needs, so that it outlives what the caller does meanwhile. Reused: the vectors
/// keep their memory.
struct StepPlan {
    int64_t num_tokens = 0;
    int64_t num_sequences = 0;
    std::vector<int32_t> token_ids;
    std::vector<int32_t> positions;
    /// Type of each token; empty if all are of type 0.
    std::vector<int32_t> token_types;
    /// kRopeAxes of each token, for rotations that tell them apart; empty where each is its position.
    std::vector<int32_t> axes;
    /// Context position of the last token that each token sees; empty if each sees up to itself.
    std::vector<int32_t> last_seen;
    /// Tokens whose rows are given in place of embedded ids, ascending, and the rows.
    std::vector<int32_t> given_tokens;
    std::vector<float> given_rows;
    /// For each op that adds given rows in turn, those of the tokens above.
    std::vector<float> given_added;
    std::vector<int32_t> slots;
    std::vector<int32_t> query_starts;
    std::vector<int32_t> context_lengths;
    std::vector<int32_t> block_tables;
    std::vector<int32_t> block_table_starts;
    std::vector<OutputRow> outputs;
    std::vector<int32_t> logprob_ids;
    /// Masks of allowed tokens that `outputs` point to.
    std::vector<uint32_t> masks;
    /// Keeps the states that `outputs` point to.
    std::vector<std::shared_ptr<SamplerState>> states;
    /// Adapters of the step, and of each sequence the index of its own, or -1; both empty when no sequence has one.
    std::vector<std::shared_ptr<const Adapter>> adapters;
    std::vector<int32_t> sequence_adapters;
    StateLayout recurrent;
    bool wants_logits = false;
    bool wants_op_times = false;
    /// What the program sends is not kept.
    bool without_sent = false;
    /// Runs this of so many equal parts of the program's ops.
    int64_t part = 0;
    int64_t num_parts = 1;
    /// What an earlier stage sent: the spans of its sends, one after another, each of all rows.
    std::vector<float> received;

    StepLayout layout() const {
        return {num_tokens,          num_sequences,       slots.data(), query_starts.data(), context_lengths.data(),
                block_tables.data(), block_table_starts.data(), last_seen.empty() ? nullptr : last_seen.data()};
    }
};

/// Results of a step, one entry per output row; the flat arrays hold the rows' parts one after another, in row order,
/// as long as the plan asked for (a row in error leaves its parts zero).
struct StepResult {
    std::vector<int32_t> tokens;
    std::vector<uint8_t> errors;
    std::vector<float> logprobs;
    std::vector<int32_t> ranks;
    std::vector<int32_t> top_tokens;
    std::vector<float> top_logprobs;
    std::vector<float> id_logprobs;
    std::vector<float> hidden;
    std::vector<float> logits;
    /// Empty unless a row wants one.
    std::vector<uint64_t> digests;
    double compute_ms = 0.0;
    /// The spans that the program sends, one after another, each of all rows.
    std::vector<float> sent;
    /// What the rank got from others, and the time that it took, waits included.
    int64_t exchanged_bytes = 0;
    double exchange_ms = 0.0;
    /// Of each `OpKind`, how many ran and how long; empty unless the plan wants them.
    std::vector<int32_t> op_counts;
    std::vector<double> op_ms;
};

}  // namespace octavo
