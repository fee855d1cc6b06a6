// Times the ops beside the matrices at the shapes of common models. Usage: ops_bench [threads].
// Figures are the best of several calls: processor time on one thread, which a busy host disturbs little, else wall time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "../core/isa.h"
#include "../ops/attention.h"
#include "../ops/rows.h"
#include "../program/kv_cache.h"
#include "../sampling/logprobs.h"
#include "../sampling/row_sampler.h"

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

/// `num_sequences` sequences of `queries` tokens each at the end of `context` positions.
void bench_attention(ThreadPool& pool, const char* name, AttentionSpec spec, int64_t num_sequences, int64_t queries,
                     int64_t context) {
    const int64_t block_size = 16;
    const int64_t blocks = (context + block_size - 1) / block_size;
    const KvShape shape{KvDtype::bf16, num_sequences * blocks, block_size, spec.num_kv_heads, spec.head_dim};
    const KvCache cache(shape, 1);
    std::vector<int32_t> tables, table_starts, starts, contexts, slots;
    for (int64_t s = 0; s < num_sequences; s++) {
        table_starts.push_back(static_cast<int32_t>(s * blocks));
        starts.push_back(static_cast<int32_t>(s * queries));
        contexts.push_back(static_cast<int32_t>(context));
        // Scattered, as blocks are after a while of serving.
        for (int64_t b = 0; b < blocks; b++) tables.push_back(static_cast<int32_t>((b * 37 + s) % blocks + s * blocks));
    }
    table_starts.push_back(static_cast<int32_t>(num_sequences * blocks));
    starts.push_back(static_cast<int32_t>(num_sequences * queries));
    const int64_t tokens = num_sequences * queries;
    for (int64_t t = 0; t < tokens; t++) {
        const int64_t position = context - queries + t % queries;
        slots.push_back(static_cast<int32_t>(tables[static_cast<size_t>(t / queries * blocks + position / block_size)] * block_size +
                                             position % block_size));
    }
    const int64_t q_width = spec.num_heads * spec.head_dim;
    const int64_t kv_width = spec.num_kv_heads * spec.head_dim;
    auto q = noise(static_cast<size_t>(tokens * q_width), 1.0f);
    auto kv = noise(static_cast<size_t>(tokens * kv_width), 1.0f);
    std::vector<float> out(q.size());
    const StepLayout step{tokens,          num_sequences,  slots.data(),       starts.data(),
                          contexts.data(), tables.data(), table_starts.data()};
    Attention attention(pool);
    const double store = best_ms([&] { attention.store(shape, cache.layer(0), step, {kv.data(), kv_width}, {kv.data(), kv_width}); });
    const double attend = best_ms([&] { attention.attend(spec, shape, cache.layer(0), step, {q.data(), q_width}, {out.data(), q_width}); });
    const double pairs = static_cast<double>(num_sequences) * (static_cast<double>(queries) * static_cast<double>(context) -
                                                               static_cast<double>(queries * (queries - 1)) / 2);
    const double gflop = pairs * static_cast<double>(q_width) * 4e-9;
    std::printf("%-34s attend %8.3f ms (%5.1f GFLOP/s)  store %7.3f ms\n", name, attend, gflop / attend * 1e3, store);
}

void bench_sampling() {
    const int64_t vocab = 128256;
    const auto logits = noise(static_cast<size_t>(vocab), 2.5f);
    std::vector<float> row(logits);
    RowSampler sampler;
    TopTokens top;
    sampler.reserve(vocab);
    top.reserve(vocab);
    bool bad = false;
    const float largest = op_kernels().largest(logits.data(), vocab, &bad);
    const auto time = [&](const char* name, RowSampling sampling) {
        uint64_t index = 0;
        const double ms = best_ms(
            [&] {
                sampling.index = index++;
                op_kernels().largest(row.data(), vocab, &bad);
                sampler.sample(row.data(), vocab, largest, sampling, true);
            },
            50);
        std::printf("sample %-27s %8.3f ms\n", name, ms);
    };
    time("greedy", {0.0f, 1.0f, 0, 0.0f, 1, 0, false, nullptr});
    time("temperature 1", {1.0f, 1.0f, 0, 0.0f, 1, 0, false, nullptr});
    time("temperature 0.7 top-p 0.9", {0.7f, 0.9f, 0, 0.0f, 1, 0, false, nullptr});
    time("temperature 1 top-p 0.99", {1.0f, 0.99f, 0, 0.0f, 1, 0, false, nullptr});
    time("top-k 50 top-p 0.95", {1.0f, 0.95f, 50, 0.0f, 1, 0, false, nullptr});
    time("min-p 0.05", {1.0f, 1.0f, 0, 0.05f, 1, 0, false, nullptr});
    int32_t tokens[20];
    std::printf("log-softmax and top 20             %8.3f ms\n", best_ms([&] {
                    const LogSoftmax softmax = log_softmax(logits.data(), vocab, largest);
                    top.find(logits.data(), vocab, 20, tokens);
                    rank_of(logits.data(), vocab, tokens[static_cast<int>(softmax.log_sum) & 3]);
                }));
}

void bench_rows(ThreadPool& pool, int64_t rows) {
    const int64_t hidden = 2048;
    const int64_t inner = 8192;
    auto x = noise(static_cast<size_t>(rows * hidden), 1.0f);
    auto residual = noise(static_cast<size_t>(rows * hidden), 1.0f);
    auto gate_up = noise(static_cast<size_t>(rows * inner * 2), 1.0f);
    std::vector<float> out(static_cast<size_t>(rows * inner));
    const auto weight = noise(static_cast<size_t>(hidden), 1.0f);
    const OpKernels& kernels = op_kernels();
    const auto each = [&](int64_t cost, auto&& row) {
        return best_ms([&] {
            for_rows(pool, rows, cost, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; i++) row(i);
            });
        });
    };
    const double norm = each(hidden, [&](int64_t i) {
        kernels.rms_norm(&x[static_cast<size_t>(i * hidden)], weight.data(), 0.0f, 1e-5f, hidden, hidden,
                         &residual[static_cast<size_t>(i * hidden)], &out[static_cast<size_t>(i * hidden)]);
    });
    const double silu = each(inner, [&](int64_t i) {
        const float* gate = &gate_up[static_cast<size_t>(i * inner * 2)];
        kernels.gated_activation(Activation::silu, gate, gate + inner, &out[static_cast<size_t>(i * inner)], inner);
    });
    std::printf("%4lld rows: rms_norm+residual 2048 %8.4f ms, silu 8192 %8.4f ms\n", static_cast<long long>(rows), norm, silu);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) num_threads = std::max(1, std::atoi(argv[1]));
    ThreadPool pool(num_threads);
    std::printf("%s, %d threads\n", isa_name(active_isa()), pool.size());
    const AttentionSpec llama_1b{32, 8, 64, 0.125f, 0.0f, 0};
    const AttentionSpec llama_8b{32, 8, 128, 0.088f, 0.0f, 0};
    const AttentionSpec qwen_05b{14, 2, 64, 0.125f, 0.0f, 0};
    bench_attention(pool, "llama-1b decode 1 x 256", llama_1b, 1, 1, 256);
    bench_attention(pool, "llama-1b decode 1 x 2048", llama_1b, 1, 1, 2048);
    bench_attention(pool, "llama-1b decode 16 x 512", llama_1b, 16, 1, 512);
    bench_attention(pool, "llama-1b prefill 512 of 512", llama_1b, 1, 512, 512);
    bench_attention(pool, "llama-1b prefill 512 of 4096", llama_1b, 1, 512, 4096);
    bench_attention(pool, "llama-8b decode 1 x 2048", llama_8b, 1, 1, 2048);
    bench_attention(pool, "llama-8b prefill 512 of 512", llama_8b, 1, 512, 512);
    bench_attention(pool, "qwen-0.5b decode 1 x 2048", qwen_05b, 1, 1, 2048);
    bench_attention(pool, "qwen-0.5b prefill 512 of 512", qwen_05b, 1, 512, 512);
    bench_rows(pool, 1);
    bench_rows(pool, 512);
    bench_sampling();
    return 0;
}
