#pragma once
#include <cstdint>
#include <vector>

#include "function_ref.h"

namespace octavo {

/// Workers that spin briefly for the next region, then sleep. Regions run one at a time, also when several threads
/// ask; the caller takes part as thread 0. A region may not start another one, and its function may not throw.
class ThreadPool {
public:
    /// Its workers stay on `cores`, or run anywhere when there are none; the caller places itself.
    explicit ThreadPool(int num_threads, const std::vector<int>& cores = {});
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const;

    /// Runs fn(thread_index, num_threads) on every thread and returns when all are done.
    void run(FunctionRef<void(int, int)> fn);

    /// Splits [0, count) into chunks of `grain`; fn(begin, end, thread_index) gets one or several neighbours. Each thread has a run
    /// of its own, so that it reads memory in order, and steals from the ends of the others' runs when it has finished.
    /// What is computed for an index may not depend on the chunking.
    void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t, int)> fn);

private:
    struct State;
    State* state_;
};

}  // namespace octavo
