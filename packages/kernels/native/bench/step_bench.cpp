// Time of one step of models of common shapes with random weights, whole and kind of op by kind of op.
// Usage: step_bench [threads] [llama-1b | qwen-0.5b | granite-moe-1b] [type label] [m ...]. Up to 64 tokens are that many decoding sequences, more
// are one prompt. Figures are the best of several steps: processor time on one thread, which a busy host disturbs little,
// else wall time. A kind's figure is that of a program of its ops alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/isa.h"
#include "../program/executor.h"
#include "../tests/support/weight_cases.h"

namespace octavo::test {

namespace {

constexpr int64_t kContext = 256;
constexpr int64_t kBlockSize = 16;
constexpr int64_t kMostSequences = 64;
constexpr int64_t kSampleRows = 64;

struct Shape {
    const char* name;
    int64_t layers;
    int64_t hidden;
    int64_t inner;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t vocab;
    int64_t experts;  // of `inner` columns each; 0 for a plain MLP
    int64_t top_k;
};

constexpr Shape kShapes[] = {{"llama-1b", 16, 2048, 8192, 32, 8, 64, 128256, 0, 0},
                             {"qwen-0.5b", 24, 896, 4864, 14, 2, 64, 151936, 0, 0},
                             {"granite-moe-1b", 24, 1024, 512, 16, 8, 64, 49152, 32, 8}};

/// Weight types of a model's matrices. Q4_K_M keeps v and down in Q6_K in some layers; here in every other one.
struct Types {
    WeightType most;
    WeightType finer;
    WeightType head;
};

int num_threads = 1;

double now_ms() {
    timespec now;
    clock_gettime(num_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// A few random rows, stacked as often as needed.
std::shared_ptr<const Matrix> random_matrix(WeightType type, int64_t rows, int64_t cols, ThreadPool& pool) {
    const Sample sample = make_sample(type, kSampleRows, cols, 0, false, 3);
    std::vector<MatrixSource> sources;
    for (int64_t row = 0; row < rows; row += kSampleRows) {
        sources.push_back(sample.source());
        sources.back().rows = std::min(kSampleRows, rows - row);
    }
    return Matrix::pack(sources, pool);
}

ExpertsOp mixture(const Shape& shape, WeightType most, WeightType down, BufferSpan in, BufferSpan scores, BufferSpan out,
                  ThreadPool& pool) {
    ExpertsOp op{in, scores, out, {}, RoutingRule{shape.top_k}, nullptr, nullptr, Activation::silu, false};
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
        op.experts.push_back({random_matrix(most, 2 * shape.inner, shape.hidden, pool), nullptr,
                              random_matrix(down, shape.hidden, shape.inner, pool), nullptr, nullptr, nullptr});
    }
    return op;
}

struct Model {
    std::vector<int64_t> widths;
    std::vector<std::pair<std::string, Op>> ops;
    std::shared_ptr<const Matrix> head;
    BufferSpan hidden;
};

Model make_model(const Shape& shape, const Types& types, ThreadPool& pool) {
    const auto ones = [](int64_t length) { return std::make_shared<const Vector>(static_cast<size_t>(length), 1.0f); };
    const int64_t q = shape.heads * shape.head_dim;
    const int64_t kv = shape.kv_heads * shape.head_dim;
    const auto whole = [](int32_t buffer, int64_t width) { return BufferSpan{buffer, 0, width}; };
    const BufferSpan residual = whole(0, shape.hidden);
    const BufferSpan normed = whole(1, shape.hidden);
    const BufferSpan update = whole(2, shape.hidden);
    const BufferSpan qkv = whole(3, q + 2 * kv);
    const BufferSpan attended = whole(4, q);
    const BufferSpan gate_up = whole(5, 2 * shape.inner);
    const BufferSpan activated = whole(6, shape.inner);
    const BufferSpan last = whole(7, shape.hidden);
    const BufferSpan scores = whole(8, std::max<int64_t>(1, shape.experts));
    Model model;
    model.widths = {shape.hidden,    shape.hidden, shape.hidden, q + 2 * kv,  q,
                    2 * shape.inner, shape.inner,  shape.hidden, scores.width};
    model.hidden = last;
    model.head = random_matrix(types.head, shape.vocab, shape.hidden, pool);
    const auto add = [&](const char* kind, Op op) { model.ops.emplace_back(kind, std::move(op)); };
    add("embedding", EmbeddingOp{model.head, residual, 1.0f});
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
        const bool finer = layer % 2 == 0 && types.finer != types.most;
        const BufferSpan none{-1, 0, 0};
        add("norm", RmsNormOp{layer == 0 ? residual : update, normed, layer == 0 ? none : residual, ones(shape.hidden), 1e-5f, 0.0f,
                              shape.hidden});
        if (finer) {
            add("qkv", LinearOp{normed, {3, 0, q}, random_matrix(types.most, q, shape.hidden, pool), nullptr});
            add("qkv", LinearOp{normed, {3, q, kv}, random_matrix(types.most, kv, shape.hidden, pool), nullptr});
            add("qkv", LinearOp{normed, {3, q + kv, kv}, random_matrix(types.finer, kv, shape.hidden, pool), nullptr});
        } else {
            add("qkv", LinearOp{normed, qkv, random_matrix(types.most, q + 2 * kv, shape.hidden, pool), nullptr});
        }
        add("rope", RopeOp{{3, 0, q + kv}, shape.head_dim, 0});
        add("attention", AttentionOp{{3, 0, q}, {3, q, kv}, {3, q + kv, kv}, attended, layer,
                                     {shape.heads, shape.kv_heads, shape.head_dim, 0.125f, 0.0f, 0}});
        add("output", LinearOp{attended, update, random_matrix(types.most, shape.hidden, q, pool), nullptr});
        add("norm", RmsNormOp{update, normed, residual, ones(shape.hidden), 1e-5f, 0.0f, shape.hidden});
        const WeightType down = finer ? types.finer : types.most;
        if (shape.experts > 0) {
            add("experts", LinearOp{normed, scores, random_matrix(WeightType::f32, shape.experts, shape.hidden, pool), nullptr});
            add("experts", mixture(shape, types.most, down, normed, scores, update, pool));
            continue;
        }
        add("gate_up", LinearOp{normed, gate_up, random_matrix(types.most, 2 * shape.inner, shape.hidden, pool), nullptr});
        add("activation", GatedActivationOp{gate_up, activated, Activation::silu});
        add("down", LinearOp{activated, update, random_matrix(down, shape.hidden, shape.inner, pool), nullptr});
    }
    add("norm", AddOp{update, residual});
    add("gather", GatherOp{residual, last});
    add("norm", RmsNormOp{last, last, {-1, 0, 0}, ones(shape.hidden), 1e-5f, 0.0f, shape.hidden});
    return model;
}

StepPlan make_plan(int64_t m) {
    const bool decoding = m <= kMostSequences;
    StepPlan plan;
    plan.num_tokens = m;
    plan.num_sequences = decoding ? m : 1;
    plan.query_starts = {0};
    plan.block_table_starts = {0};
    const int64_t context = decoding ? kContext : m;
    const int64_t queries = decoding ? 1 : m;
    const int64_t blocks = (context + kBlockSize - 1) / kBlockSize;
    for (int64_t s = 0; s < plan.num_sequences; ++s) {
        for (int64_t position = context - queries; position < context; ++position) {
            plan.token_ids.push_back(static_cast<int32_t>((s * 977 + position * 31) % 50000));
            plan.positions.push_back(static_cast<int32_t>(position));
            plan.slots.push_back(static_cast<int32_t>(s * blocks * kBlockSize + position));
        }
        plan.query_starts.push_back(static_cast<int32_t>((s + 1) * queries));
        plan.context_lengths.push_back(static_cast<int32_t>(context));
        for (int64_t b = 0; b < blocks; ++b) plan.block_tables.push_back(static_cast<int32_t>(s * blocks + b));
        plan.block_table_starts.push_back(static_cast<int32_t>((s + 1) * blocks));
        OutputRow row{};
        row.kind = OutputKind::sample;
        row.token = static_cast<int32_t>((s + 1) * queries - 1);
        row.sampling.top_p = 1.0f;
        plan.outputs.push_back(row);
    }
    return plan;
}

double best_ms(Executor& executor, Program& program, const KvCache& cache, const StepPlan& plan) {
    const std::atomic<bool> cancelled{false};
    StepResult result;
    double best = 1e30;
    double total = 0;
    for (int repeat = 0; repeat < 3 || (total < 1000 && repeat < 30); ++repeat) {
        const double start = now_ms();
        executor.run(program, cache, plan, result, cancelled);
        const double elapsed = now_ms() - start;
        total += elapsed;
        if (repeat > 0) best = std::min(best, elapsed);
    }
    return best;
}

void measure(const Shape& shape, const Types& types, const char* label, const std::vector<int64_t>& batches, ThreadPool& pool) {
    const Model model = make_model(shape, types, pool);
    const int64_t most = *std::max_element(batches.begin(), batches.end());
    const int64_t num_blocks = std::max(kMostSequences * kContext, most) / kBlockSize + 1;
    const KvCache cache({KvDtype::bf16, num_blocks, kBlockSize, shape.kv_heads, shape.head_dim}, shape.layers);
    const RopeSpec rope{std::vector<float>(static_cast<size_t>(shape.head_dim / 2), 0.1f), 1.0f, RopeLayout::neox};
    const auto make_program = [&](const std::string& kind) {
        std::vector<Op> ops;
        // What a row holds decides which experts it takes.
        if (kind == "experts") ops.push_back(EmbeddingOp{model.head, {1, 0, shape.hidden}, 1.0f});
        for (const auto& [name, op] : model.ops) {
            if (kind.empty() || name == kind) ops.push_back(op);
        }
        return std::make_unique<Program>(model.widths, std::move(ops), std::vector<RopeSpec>{rope}, model.hidden,
                                         OutputHead{model.head, nullptr, 1.0f, 0.0f}, most);
    };
    std::vector<std::string> kinds = {""};
    for (const auto& [name, op] : model.ops) {
        if (std::find(kinds.begin(), kinds.end(), name) == kinds.end()) kinds.push_back(name);
    }
    Executor executor(pool);
    for (const int64_t m : batches) {
        StepPlan plan = make_plan(m);
        for (const std::string& kind : kinds) {
            StepPlan without_head = plan;
            // Only `gather` needs the output rows.
            if (kind != "gather") without_head.outputs.clear();
            const auto program = make_program(kind);
            if (kind.empty()) {
                const double whole = best_ms(executor, *program, cache, plan);
                std::printf("%s %s m=%lld %s x%d: step %.3f ms, %.1f tokens/s\n", shape.name, label, static_cast<long long>(m),
                            isa_name(active_isa()), pool.size(), whole, static_cast<double>(m) / whole * 1e3);
            } else if (kind != "gather") {
                std::printf("  %-10s %9.3f ms\n", kind.c_str(), best_ms(executor, *program, cache, without_head));
            }
        }
        const auto head = make_program("head");
        std::printf("  %-10s %9.3f ms\n", "head", best_ms(executor, *head, cache, plan));
        std::fflush(stdout);
    }
}

}  // namespace

}  // namespace octavo::test

int main(int argc, char** argv) {
    using namespace octavo;
    using namespace octavo::test;
    if (argc > 1) num_threads = std::max(1, std::atoi(argv[1]));
    const std::string shape_name = argc > 2 ? argv[2] : "llama-1b";
    const std::string label = argc > 3 ? argv[3] : "q4_0";
    std::vector<int64_t> batches;
    for (int i = 4; i < argc; ++i) batches.push_back(std::max(1, std::atoi(argv[i])));
    if (batches.empty()) batches = {1, 8, 32, 512};
    ThreadPool pool(num_threads);
    for (const Shape& shape : kShapes) {
        if (shape_name != shape.name) continue;
        if (label == "q4_k_m") {
            measure(shape, {WeightType::q4_k, WeightType::q6_k, WeightType::q6_k}, "q4_k_m", batches, pool);
            return 0;
        }
        for (const WeightCase& weight : kWeightCases) {
            if (label != weight.label || weight.group != 0) continue;
            // GGUF files of four-bit models keep the head in Q6_K (Q8_0 where its columns are no multiple of 256).
            const bool fine_head = weight.type == WeightType::q4_0 || weight.type == WeightType::q4_k;
            const WeightType head = !fine_head ? weight.type : shape.hidden % 256 == 0 ? WeightType::q6_k : WeightType::q8_0;
            measure(shape, {weight.type, weight.type, head}, weight.label, batches, pool);
            return 0;
        }
    }
    std::fprintf(stderr, "unknown model or type\n");
    return 1;
}
