// The machine's limits as one JSON line: read bandwidth of all threads together, and the multiply-add peaks of int8 (AMX where
// kernels use it, else VNNI on AVX-512), bf16 and f32 from registers alone. Usage: machine_bench [threads]. OCTAVO_ISA restricts it as it does the kernels.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../core/isa.h"
#include "../core/thread_pool.h"
#include "../tests/support/check.h"
#include "peak.h"
#include "read_bandwidth.h"

namespace octavo::test {

namespace {

Peak machine_peak() {
#if defined(__x86_64__)
    if (active_isa() == Isa::avx2) return peak_avx2();
    if (active_isa() == Isa::avx512) {
        Peak peak = peak_avx512();
        if (has_avx512_bf16()) {
            peak.bf16 = peak_avx512_bf16().bf16;
            peak.bf16_ops = peak_avx512_bf16().bf16_ops;
        }
        if (kernel_path(KernelKind::quantised) == KernelPath::avx512_amx) {
            peak.int8 = peak_avx512_amx().int8;
            peak.int8_ops = peak_avx512_amx().int8_ops;
        }
        return peak;
    }
#endif
    return {};
}

/// Best of several runs of all threads, 1e9 operations per second; 0 without a loop.
double measure(ThreadPool& pool, PeakLoop loop, int64_t ops) {
    using Clock = std::chrono::steady_clock;
    if (loop == nullptr) return 0;
    constexpr int64_t kRounds = 1000000;
    std::vector<int32_t> results(static_cast<size_t>(pool.size()));
    double best = 0;
    for (int run = 0; run < 5; ++run) {
        const Clock::time_point start = Clock::now();
        pool.run([&](int thread, int) { results[static_cast<size_t>(thread)] = loop(kRounds); });
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        best = std::max(best, static_cast<double>(ops * kRounds * pool.size()) / seconds / 1e9);
    }
    CHECK(std::all_of(results.begin(), results.end(), [&](int32_t result) { return result == results.front(); }));
    return best;
}

}  // namespace

}  // namespace octavo::test

int main(int argc, char** argv) {
    using namespace octavo;
    using namespace octavo::test;
    ThreadPool pool(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2);
    const double read = read_bandwidth(pool, 16);
    const Peak peak = machine_peak();
    const double int8 = measure(pool, peak.int8, peak.int8_ops);
    const double bf16 = measure(pool, peak.bf16, peak.bf16_ops);
    const double f32 = measure(pool, peak.f32, peak.f32_ops);
    std::printf("{\"isa\":\"%s\",\"threads\":%d,\"read_gbps\":%.2f,\"int8_gops\":%.1f,\"bf16_gflops\":%.1f,\"f32_gflops\":%.1f}\n",
                isa_name(active_isa()), pool.size(), read / 1e9, int8, bf16, f32);
    return finish("machine_bench");
}
