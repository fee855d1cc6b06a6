// Speed of the linear kernels, one JSON line per measurement: gops counts a multiply-add as two, gbps the packed weights read.
// Usage: matrix_bench [threads] [type label or "all"] [m ...]. Answers are checked against the reference before anything is timed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../matrix/matrix.h"
#include "../tests/support/check.h"
#include "read_bandwidth.h"
#include "../tests/support/reference.h"
#include "../tests/support/weight_cases.h"

namespace octavo::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRows = 2048;
constexpr int64_t kCols = 8192;
/// Copies of the matrix are used in turn until they outgrow the last-level cache, as the layers of a model do.
constexpr size_t kColdBytes = size_t{96} << 20;

/// Processor time of all threads: what a busy host leaves of a measurement. Includes the pool's spinning.
double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool answers_right(const Sample& sample, const Matrix& matrix, int64_t m, ThreadPool& pool, Workspace& workspace) {
    Random random(4);
    std::vector<float> x(static_cast<size_t>(m * sample.cols));
    for (float& value : x) value = random.activation();
    std::vector<float> y(static_cast<size_t>(m * sample.rows));
    matrix.linear(x.data(), sample.cols, m, y.data(), sample.rows, nullptr, workspace, pool);
    const int64_t row = m - 1;
    const Reference reference = reference_linear(sample, x.data() + row * sample.cols, sample.cols, 1);
    for (int64_t r = 0; r < sample.rows; ++r) {
        const size_t at = static_cast<size_t>(r);
        const double error = std::fabs(y[static_cast<size_t>(row * sample.rows + r)] - reference.y[at]);
        if (!(error <= (1e-5 + sample.rounding) * (reference.magnitude[at] + 1))) return false;
    }
    return true;
}

void measure(const WeightCase& weight, const std::vector<int64_t>& batches, ThreadPool& pool, double bandwidth) {
    const Sample sample = make_sample(weight, kRows, kCols, 1);
    std::vector<std::unique_ptr<Matrix>> matrices;
    const Clock::time_point pack_start = Clock::now();
    size_t packed = 0;
    while (packed < kColdBytes) {
        matrices.push_back(Matrix::pack({sample.source()}, pool));
        packed += matrices.back()->bytes();
    }
    const double pack_seconds = seconds_since(pack_start);
    std::printf("{\"kernel\":\"pack\",\"type\":\"%s\",\"isa\":\"%s\",\"gbps\":%.2f}\n", weight.label, isa_name(active_isa()),
                static_cast<double>(sample.source_bytes()) * static_cast<double>(matrices.size()) / pack_seconds / 1e9);
    Workspace workspace;
    for (const int64_t m : batches) {
        const bool right = answers_right(sample, *matrices.front(), m, pool, workspace);
        CHECK_MESSAGE(right, std::string(weight.label) + " m=" + std::to_string(m) + ": wrong answer, not timed");
        if (!right) continue;
        std::vector<float> x(static_cast<size_t>(m * kCols));
        Random random(6);
        for (float& value : x) value = random.activation();
        std::vector<float> y(static_cast<size_t>(m * kRows));
        double best = 1e9;
        double best_cpu = 1e9;
        double total = 0;
        size_t next = 0;
        for (int repeat = 0; repeat < 3 || (total < 1.0 && repeat < 200); ++repeat) {
            const size_t batch = m < 32 ? matrices.size() : 1;
            const Clock::time_point start = Clock::now();
            const double cpu_start = cpu_seconds();
            for (size_t i = 0; i < batch; ++i) {
                matrices[next++ % matrices.size()]->linear(x.data(), kCols, m, y.data(), kRows, nullptr, workspace, pool);
            }
            const double elapsed = seconds_since(start);
            total += elapsed;
            if (repeat == 0) continue;
            best = std::min(best, elapsed / static_cast<double>(batch));
            best_cpu = std::min(best_cpu, (cpu_seconds() - cpu_start) / static_cast<double>(batch));
        }
        const double gops = 2.0 * static_cast<double>(kRows * kCols * m) / best / 1e9;
        const double gbps = static_cast<double>(matrices.front()->bytes()) / best / 1e9;
        std::printf("{\"kernel\":\"linear\",\"type\":\"%s\",\"isa\":\"%s\",\"bf16\":%s,\"threads\":%d,\"m\":%ld,\"rows\":%ld,"
                    "\"cols\":%ld,\"us\":%.1f,\"cpu_us\":%.1f,\"gops\":%.1f,\"gbps\":%.2f,\"of_read_bandwidth\":%.3f}\n",
                    weight.label, isa_name(active_isa()), has_avx512_bf16() ? "true" : "false", pool.size(), static_cast<long>(m),
                    static_cast<long>(kRows), static_cast<long>(kCols), best * 1e6, best_cpu * 1e6, gops, gbps, gbps * 1e9 / bandwidth);
        std::fflush(stdout);
    }
}

}  // namespace

}  // namespace octavo::test

int main(int argc, char** argv) {
    using namespace octavo;
    using namespace octavo::test;
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    const std::string only = argc > 2 ? argv[2] : "all";
    std::vector<int64_t> batches;
    for (int i = 3; i < argc; ++i) batches.push_back(std::max(1, std::atoi(argv[i])));
    if (batches.empty()) batches = {1, 4, 8, 16, 32, 128, 512};
    ThreadPool pool(threads);
    const double bandwidth = read_bandwidth(pool, 8);
    std::printf("{\"kernel\":\"read\",\"threads\":%d,\"gbps\":%.2f}\n", pool.size(), bandwidth / 1e9);
    for (const WeightCase& weight : kWeightCases) {
        if (only == "all" || only == weight.label) measure(weight, batches, pool, bandwidth);
    }
    return finish("matrix_bench");
}
