// Times the ops beside matrices and attention at the shapes of common models, one JSON line each. Usage: ops_bench [threads].
// Figures are the best of several calls: processor time on one thread, which a busy host disturbs little, else wall time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "../core/isa.h"
#include "../ops/kernels.h"
#include "../ops/rows.h"
#include "../sampling/logprobs.h"
#include "../sampling/row_sampler.h"
#include "../tests/support/op_cases.h"

using namespace octavo;

namespace {

int num_threads = 1;

double now_ms() {
    timespec now;
    clock_gettime(num_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <typename F>
double best_ms(F&& work, int repeats = 7) {
    double best = 1e30;
    for (int i = 0; i < repeats; i++) {
        const double start = now_ms();
        work();
        best = std::min(best, now_ms() - start);
    }
    return best;
}

std::vector<float> noise(size_t count, float scale) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

void print(const char* kernel, const char* size_name, int64_t size, int64_t rows, double ms) {
    std::printf("{\"kernel\":\"%s\",\"case\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"size\":%lld,\"rows\":%lld,\"us\":%.2f}\n", kernel,
                size_name, isa_name(active_isa()), num_threads, static_cast<long long>(size), static_cast<long long>(rows), ms * 1e3);
}

void bench_sampling(const test::SizeCase& vocabulary) {
    const int64_t vocab = vocabulary.size;
    const auto logits = noise(static_cast<size_t>(vocab), 2.5f);
    std::vector<float> row(logits);
    RowSampler sampler;
    TopTokens top;
    sampler.reserve(vocab);
    top.reserve(vocab);
    bool bad = false;
    const float largest = op_kernels().largest(logits.data(), vocab, &bad);
    const auto time = [&](const char* kernel, RowSampling sampling) {
        uint64_t index = 0;
        const double ms = best_ms(
            [&] {
                sampling.index = index++;
                op_kernels().largest(row.data(), vocab, &bad);
                sampler.sample(row.data(), vocab, largest, sampling, true);
            },
            50);
        print(kernel, vocabulary.name, vocab, 1, ms);
    };
    time("sample: greedy", {0.0f, 1.0f, 0, 0.0f, 1, 0, false, nullptr, nullptr});
    time("sample: temperature 1", {1.0f, 1.0f, 0, 0.0f, 1, 0, false, nullptr, nullptr});
    time("sample: temperature 0.7 top-p 0.9", {0.7f, 0.9f, 0, 0.0f, 1, 0, false, nullptr, nullptr});
    time("sample: temperature 1 top-p 0.99", {1.0f, 0.99f, 0, 0.0f, 1, 0, false, nullptr, nullptr});
    time("sample: top-k 50 top-p 0.95", {1.0f, 0.95f, 50, 0.0f, 1, 0, false, nullptr, nullptr});
    time("sample: min-p 0.05", {1.0f, 1.0f, 0, 0.05f, 1, 0, false, nullptr, nullptr});
    int32_t tokens[20];
    print("log-softmax and top 20", vocabulary.name, vocab, 1, best_ms([&] {
              const LogSoftmax softmax = log_softmax(logits.data(), vocab, largest);
              top.find(logits.data(), vocab, 20, tokens);
              rank_of(logits.data(), vocab, tokens[static_cast<int>(softmax.log_sum) & 3]);
          }));
}

void bench_rows(ThreadPool& pool, const test::SizeCase& row_width, int64_t rows) {
    const int64_t width = row_width.size;
    auto x = noise(static_cast<size_t>(rows * width), 1.0f);
    auto residual = noise(static_cast<size_t>(rows * width), 1.0f);
    auto gate_up = noise(static_cast<size_t>(rows * width * 2), 1.0f);
    std::vector<float> out(static_cast<size_t>(rows * width));
    const auto weight = noise(static_cast<size_t>(width), 1.0f);
    const OpKernels& kernels = op_kernels();
    const auto each = [&](const char* kernel, auto&& row) {
        const double ms = best_ms([&] {
            for_rows(pool, rows, width, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; i++) row(i);
            });
        });
        print(kernel, row_width.name, width, rows, ms);
    };
    each("rms_norm and residual", [&](int64_t i) {
        kernels.rms_norm(&x[static_cast<size_t>(i * width)], weight.data(), 0.0f, 1e-5f, width, width, 0,
                         &residual[static_cast<size_t>(i * width)], &out[static_cast<size_t>(i * width)]);
    });
    each("silu", [&](int64_t i) {
        const float* gate = &gate_up[static_cast<size_t>(i * width * 2)];
        kernels.gated_activation(Activation::silu, gate, gate + width, &out[static_cast<size_t>(i * width)], width);
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) num_threads = std::max(1, std::atoi(argv[1]));
    ThreadPool pool(num_threads);
    for (const test::SizeCase& width : test::kRowWidths) {
        if (width.name == nullptr) continue;
        bench_rows(pool, width, 1);
        bench_rows(pool, width, 512);
    }
    for (const test::SizeCase& vocabulary : test::kLogitCounts) {
        if (vocabulary.name != nullptr) bench_sampling(vocabulary);
    }
    return 0;
}
