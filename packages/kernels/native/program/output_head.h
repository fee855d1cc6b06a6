#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "../core/thread_pool.h"
#include "../matrix/matrix.h"
#include "../sampling/logprobs.h"
#include "../sampling/row_sampler.h"
#include "program.h"
#include "step_plan.h"

namespace octavo {

/// Turns hidden states of output rows into logits, and those into tokens and logprobs. Logits exist for a bounded number of
/// rows at a time, so that scoring a long prompt needs no more memory than sampling a batch.
class HeadRunner {
public:
    explicit HeadRunner(ThreadPool& pool);

    /// Row i of `hidden` belongs to output i when `gathered`, else to token i of the step.
    void run(const OutputHead& head, Rows hidden, int64_t width, bool gathered, const StepPlan& plan, StepResult& result,
             Workspace& workspace, Rank& rank, const std::atomic<bool>& cancelled);

private:
    /// Where an output row's parts go in the result's flat arrays.
    struct Place {
        int64_t top;
        int64_t ids;
        int64_t hidden;
        int64_t logits;
    };
    struct ThreadState {
        RowSampler sampler;
        TopTokens top;
    };

    void lay_out(const StepPlan& plan, int64_t vocab, int64_t width, StepResult& result);
    void finish_row(const StepPlan& plan, size_t index, float* logits, int64_t vocab, const OutputHead& head,
                    StepResult& result, ThreadState& state);

    ThreadPool& pool_;
    std::vector<Place> places_;
    std::vector<int32_t> pending_;
    std::vector<float> inputs_;
    std::vector<float> logits_;
    std::vector<ThreadState> threads_;
};

}  // namespace octavo
