// Times paged attention at the shapes of common models, one JSON line a case. Usage: attention_bench [threads] [dtype] [part of a case's name].
// A case walks enough layers that no cache holds them; figures are the best pass, divided by its layers: processor time on
// one thread, which a busy host disturbs little, else wall time. "of read" compares the bytes of K and V that a step must
// bring in (a shared prefix once) with the read bandwidth that the same threads reach just before.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../ops/attention/attention.h"
#include "../program/kv_cache.h"
#include "../tests/support/op_cases.h"
#include "read_bandwidth.h"

using namespace octavo;

namespace {

int num_threads = 1;

double now_ms() {
    timespec now;
    clock_gettime(num_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <typename F>
double best_ms(F&& work, double budget_ms) {
    double best = 1e30;
    double spent = 0.0;
    for (int i = 0; i < 2 || (i < 50 && spent < budget_ms); i++) {
        const double start = now_ms();
        work();
        const double took = now_ms() - start;
        best = std::min(best, took);
        spent += took;
    }
    return best;
}

std::vector<float> noise(size_t count) {
    std::mt19937 generator(7);
    std::uniform_real_distribution<float> uniform(-1.7f, 1.7f);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(generator);
    return values;
}

/// `num_sequences` sequences of `queries` tokens each at the end of `context` positions, the first `shared` in common blocks.
struct Case {
    int64_t num_sequences;
    int64_t queries;
    int64_t context;
    int64_t shared;
};

void bench(ThreadPool& pool, const test::AttentionCase& model, KvDtype dtype, const Case& c, const std::string& name) {
    const AttentionSpec& spec = model.spec;
    const int64_t block_size = 16;
    const int64_t blocks = (c.context + block_size - 1) / block_size;
    const int64_t shared_blocks = c.shared / block_size;
    const int64_t num_blocks = shared_blocks + c.num_sequences * (blocks - shared_blocks);
    const KvShape shape{dtype, num_blocks, block_size, spec.num_kv_heads, spec.head_dim};
    const int64_t layer_bytes = 2 * static_cast<int64_t>(shape.layer_bytes());
    const int64_t num_layers = std::clamp<int64_t>((int64_t{160} << 20) / layer_bytes, 1, 16);
    const KvCache cache(shape, num_layers);

    // Scattered, as blocks are after a while of serving.
    std::vector<int32_t> order(static_cast<size_t>(num_blocks));
    for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    std::vector<int32_t> tables, table_starts{0}, starts{0}, contexts, slots;
    size_t next = static_cast<size_t>(shared_blocks);
    for (int64_t s = 0; s < c.num_sequences; s++) {
        for (int64_t b = 0; b < blocks; b++) tables.push_back(b < shared_blocks ? order[static_cast<size_t>(b)] : order[next++]);
        table_starts.push_back(static_cast<int32_t>(tables.size()));
        starts.push_back(static_cast<int32_t>((s + 1) * c.queries));
        contexts.push_back(static_cast<int32_t>(c.context));
        for (int64_t position = c.context - c.queries; position < c.context; position++) {
            const int32_t block = tables[static_cast<size_t>(s * blocks + position / block_size)];
            slots.push_back(static_cast<int32_t>(block * block_size + position % block_size));
        }
    }
    const int64_t tokens = c.num_sequences * c.queries;
    const int64_t q_width = spec.num_heads * spec.head_dim;
    const int64_t kv_width = spec.num_kv_heads * spec.head_dim;
    auto q = noise(static_cast<size_t>(tokens * q_width));
    auto kv = noise(static_cast<size_t>(std::max(tokens, block_size) * kv_width));
    std::vector<float> out(q.size());
    Attention attention(pool);
    // Real values everywhere: what is not finite or subnormal may cost more or less.
    std::vector<int32_t> block_slots(static_cast<size_t>(block_size));
    const std::vector<int32_t> block_starts{0, static_cast<int32_t>(block_size)};
    for (int64_t layer = 0; layer < num_layers; layer++) {
        for (int64_t b = 0; b < num_blocks; b++) {
            for (int64_t i = 0; i < block_size; i++) block_slots[static_cast<size_t>(i)] = static_cast<int32_t>(b * block_size + i);
            const StepLayout fill{block_size, 1, block_slots.data(), block_starts.data(), nullptr, nullptr, nullptr};
            attention.begin(fill);
            attention.store(shape, cache.layer(layer), {kv.data(), kv_width}, {kv.data(), kv_width});
        }
    }

    const StepLayout step{tokens,          c.num_sequences, slots.data(),       starts.data(),
                          contexts.data(), tables.data(),   table_starts.data()};
    attention.begin(step);
    const double read = test::read_bandwidth(pool, 8) * 1e-9;
    const auto per_layer = [&](auto&& work) {
        const auto pass = [&] {
            for (int64_t layer = 0; layer < num_layers; layer++) work(layer);
        };
        return best_ms(pass, 400) / static_cast<double>(num_layers);
    };
    const double store = per_layer([&](int64_t layer) {
        attention.store(shape, cache.layer(layer), {kv.data(), kv_width}, {kv.data(), kv_width});
    });
    const double attend = per_layer([&](int64_t layer) {
        attention.attend(spec, shape, cache.layer(layer), {q.data(), q_width}, {out.data(), q_width});
    });
    const double queries = static_cast<double>(c.queries);
    const double pairs = static_cast<double>(c.num_sequences) * queries * (static_cast<double>(c.context) - (queries - 1) / 2);
    const double gflops = pairs * static_cast<double>(q_width) * 4e-6 / attend;
    const double bandwidth = static_cast<double>(layer_bytes) / attend * 1e-6;
    std::printf("{\"kernel\":\"attention\",\"case\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"us\":%.1f,\"gflops\":%.1f,\"gbps\":%.2f,"
                "\"of_read_bandwidth\":%.3f,\"store_us\":%.1f}\n",
                name.c_str(), isa_name(active_isa()), pool.size(), attend * 1e3, gflops, bandwidth, bandwidth / read, store * 1e3);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) num_threads = std::max(1, std::atoi(argv[1]));
    const std::string wanted = argc > 2 ? argv[2] : "bf16";
    const std::string part = argc > 3 ? argv[3] : "";
    const KvDtype dtype = wanted == "f32" ? KvDtype::f32 : wanted == "f16" ? KvDtype::f16 : wanted == "int8" ? KvDtype::int8 : KvDtype::bf16;
    ThreadPool pool(num_threads);
    const struct {
        const char* name;
        Case run;
    } cases[] = {
        {"decode 1 x 8k", {1, 1, 8192, 0}},
        {"decode 1 x 32k", {1, 1, 32768, 0}},
        {"decode 8 x 2k", {8, 1, 2048, 0}},
        {"decode 32 x 640", {32, 1, 640, 0}},
        {"decode 32 x 640, 448 shared", {32, 1, 640, 448}},
        {"prefill 512 of 512", {1, 512, 512, 0}},
        {"prefill 512 of 2048", {1, 512, 2048, 0}},
        {"prefill 512 of 16k", {1, 512, 16384, 0}},
        {"prefill 2048 of 2048", {1, 2048, 2048, 0}},
    };
    for (const test::AttentionCase& model : test::kAttentionModels) {
        for (const auto& c : cases) {
            const std::string name = std::string(model.name) + " " + wanted + " " + c.name;
            if (name.find(part) != std::string::npos) bench(pool, model, dtype, c.run, name);
        }
    }
    return 0;
}
