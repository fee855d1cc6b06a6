#include "read_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "../core/aligned_memory.h"
#include "../tests/support/check.h"

namespace octavo::test {

double read_bandwidth(ThreadPool& pool, int passes) {
    using Clock = std::chrono::steady_clock;
    AlignedMemory memory(size_t{256} << 20);
    std::memset(memory.data(), 1, memory.size());
    const int64_t num_words = static_cast<int64_t>(memory.size() / sizeof(uint64_t));
    const uint64_t* words = reinterpret_cast<const uint64_t*>(memory.data());
    std::vector<uint64_t> totals(static_cast<size_t>(pool.size()) * 8);
    double best = 0;
    for (int pass = 0; pass < passes; ++pass) {
        const Clock::time_point start = Clock::now();
        pool.parallel_for(num_words, 65536, [&](int64_t begin, int64_t end, int thread) {
            uint64_t sums[16] = {};
            for (int64_t i = begin; i + 16 <= end; i += 16) {
                __builtin_prefetch(words + i + 512);
                __builtin_prefetch(words + i + 520);
                for (int j = 0; j < 16; ++j) sums[j] += words[i + j];
            }
            for (const uint64_t sum : sums) totals[static_cast<size_t>(thread) * 8] += sum;
        });
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        best = std::max(best, static_cast<double>(memory.size()) / seconds);
    }
    CHECK(std::any_of(totals.begin(), totals.end(), [](uint64_t total) { return total != 0; }));
    return best;
}

}  // namespace octavo::test
