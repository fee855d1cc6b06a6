#pragma once
#include <algorithm>
#include <cstdint>

#include "../core/thread_pool.h"

namespace octavo {

/// Runs fn(begin, end) over rows, on the pool when there is work enough to pay for waking it.
/// `cost` is the work of a row in units of about one vector lane.
template <typename F>
void for_rows(ThreadPool& pool, int64_t rows, int64_t cost, F&& fn) {
    constexpr int64_t worth_sharing = 16384;
    if (rows <= 0) return;
    if (rows == 1 || pool.size() == 1 || rows * cost < worth_sharing) {
        fn(int64_t{0}, rows);
        return;
    }
    const int64_t grain = std::max<int64_t>(1, rows / (4 * pool.size()));
    pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) { fn(begin, end); });
}

}  // namespace octavo
