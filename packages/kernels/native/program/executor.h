#pragma once
#include <atomic>

#include "../core/thread_pool.h"
#include "../matrix/matrix.h"
#include "adapter.h"
#include "expert_runner.h"
#include "head_products.h"
#include "kv_cache.h"
#include "output_head.h"
#include "program.h"
#include "step_plan.h"

namespace octavo {

/// Runs programs on a thread pool, one step at a time. Steps allocate only when they are larger than all before.
class Executor {
public:
    explicit Executor(ThreadPool& pool);

    /// Returns early, with a result that must not be used, once `cancelled` is set.
    void run(Program& program, const KvCache& cache, const StepPlan& plan, StepResult& result,
             const std::atomic<bool>& cancelled);

private:
    struct Step;
    /// What the workspace's rows hold: this span's current values, encoded. A buffer below 0 means nothing.
    struct EncodedSpan {
        BufferSpan span;
        RowEncoding encoding;
    };
    static constexpr BufferSpan kNoSpan{-1, 0, 0};

    ThreadPool& pool_;
    Workspace workspace_;
    EncodedSpan encoded_{kNoSpan, {}};
    Attention attention_;
    AdapterRunner adapters_;
    StateRunner states_;
    ExpertRunner experts_;
    HeadProducts heads_;
    HeadRunner head_;
    std::vector<float> gathered_;
};

}  // namespace octavo
