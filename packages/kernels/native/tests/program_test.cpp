// A small decoder through the executor: the same bits whole, chunked, beside neighbours and on any number of threads;
// every kind of output row; adapters; cancellation; steps that allocate nothing.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "../core/isa.h"
#include "../matrix/matrix.h"
#include "../program/executor.h"
#include "support/check.h"
#include "support/weight_cases.h"
#include "support/targets.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

void* operator new(size_t size) {
    num_allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace octavo::test {

namespace {

constexpr int64_t hidden = 32;
constexpr int64_t vocab = 96;
constexpr int64_t inner = 64;
constexpr int64_t num_experts = 5;
constexpr int64_t max_tokens = 256;
constexpr AttentionSpec attention{4, 2, 16, 0.25f, 0.0f, 0};

std::shared_ptr<const Matrix> random_matrix(WeightType type, int64_t rows, int64_t cols, uint64_t seed, ThreadPool& pool) {
    const Sample sample = make_sample(type, rows, cols, 0, false, seed);
    return Matrix::pack({sample.source()}, pool);
}

std::shared_ptr<const Vector> ones(int64_t length) { return std::make_shared<const Vector>(static_cast<size_t>(length), 1.0f); }

ExpertsOp mixture(WeightType type, BufferSpan in, BufferSpan scores, BufferSpan out, ThreadPool& pool) {
    ExpertsOp op{in, scores, out, {}, RoutingRule{2}, nullptr, nullptr, Activation::silu, false};
    for (uint64_t seed = 60; seed < 60 + 3 * num_experts; seed += 3) {
        op.experts.push_back({random_matrix(type, 2 * inner, hidden, seed, pool), nullptr, random_matrix(type, hidden, inner, seed + 1, pool),
                              nullptr, nullptr, ones(hidden)});
    }
    return op;
}

/// With `apart`, ops that change nothing stand between those that could be joined.
std::unique_ptr<Program> make_program(WeightType type, ThreadPool& pool, bool apart = false) {
    const auto span = [](int32_t buffer, int64_t column, int64_t width) { return BufferSpan{buffer, column, width}; };
    const BufferSpan none{-1, 0, 0};
    const BufferSpan stream = span(0, 0, hidden);
    const BufferSpan normed = span(1, 0, hidden);
    std::vector<Op> ops;
    int32_t site = 0;
    ops.push_back(EmbeddingOp{random_matrix(type, vocab, hidden, 1, pool), stream, 1.0f});
    for (int64_t layer = 0; layer < 2; ++layer) {
        const uint64_t seed = static_cast<uint64_t>(10 * layer);
        ops.push_back(RmsNormOp{layer == 0 ? stream : normed, normed, layer == 0 ? none : stream, ones(hidden), 1e-5f, 0.0f, hidden});
        ops.push_back(LinearOp{normed, span(2, 0, 128), random_matrix(type, 128, hidden, seed + 2, pool), ones(128), site++});
        ops.push_back(RmsNormOp{span(2, 0, 64), span(2, 0, 64), none, ones(16), 1e-5f, 0.0f, 16});
        ops.push_back(RopeOp{span(2, 0, 96), 16, 0});
        ops.push_back(AttentionOp{span(2, 0, 64), span(2, 64, 32), span(2, 96, 32), span(3, 0, 64), layer, attention});
        ops.push_back(LinearOp{span(3, 0, 64), normed, random_matrix(type, hidden, 64, seed + 3, pool), nullptr});
        ops.push_back(RmsNormOp{normed, normed, stream, ones(hidden), 1e-5f, 0.0f, hidden});
        if (apart) ops.push_back(ScaleOp{normed, 1.0f});
        ops.push_back(LinearOp{normed, span(4, 0, 2 * inner), random_matrix(type, 2 * inner, hidden, seed + 4, pool), nullptr, site++});
        if (apart) ops.push_back(ScaleOp{span(4, 0, 2 * inner), 1.0f});
        ops.push_back(GatedActivationOp{span(4, 0, 2 * inner), span(5, 0, inner), Activation::silu});
        ops.push_back(LinearOp{span(5, 0, inner), normed, random_matrix(type, hidden, inner, seed + 5, pool), nullptr, site++});
        if (layer == 0) continue;
        ops.push_back(LinearOp{normed, span(6, 0, num_experts + 1), random_matrix(type, num_experts + 1, hidden, 50, pool), nullptr});
        ops.push_back(mixture(type, normed, span(6, 0, num_experts), span(7, 0, hidden), pool));
        ops.push_back(SigmoidGateOp{span(6, num_experts, 1), normed});
        ops.push_back(AddOp{span(7, 0, hidden), normed});
    }
    ops.push_back(AddOp{normed, stream});
    ops.push_back(GatherOp{stream, stream});
    ops.push_back(ScaleOp{stream, 0.5f});
    ops.push_back(RmsNormOp{stream, normed, none, ones(hidden), 1e-5f, 0.0f, hidden});
    RopeSpec rope{{1.0f, 0.3f, 0.1f, 0.03f, 0.01f, 0.003f, 0.001f, 0.0003f}, 1.0f, RopeLayout::neox};
    return std::make_unique<Program>(std::vector<int64_t>{hidden, hidden, 128, 64, 2 * inner, inner, num_experts + 1, hidden},
                                     std::move(ops),
                                     std::vector<RopeSpec>{rope}, normed,
                                     OutputHead{random_matrix(type, vocab, hidden, 99, pool), nullptr, 1.0f, 25.0f}, max_tokens);
}

OutputRow output_row(OutputKind kind, int32_t token) {
    OutputRow row{};
    row.kind = kind;
    row.token = token;
    row.sampling.top_p = 1.0f;
    return row;
}

int32_t token_of(int64_t sequence, int64_t position) { return static_cast<int32_t>((sequence * 31 + position * 7) % vocab); }

/// Adds `count` tokens of a sequence to a plan; sequence s owns blocks [8 s, 8 s + 8) of 16, in descending order.
void add_tokens(StepPlan& plan, int64_t sequence, int64_t from, int64_t count) {
    for (int64_t position = from; position < from + count; ++position) {
        plan.outputs.push_back(output_row(OutputKind::score, static_cast<int32_t>(plan.num_tokens++)));
        plan.token_ids.push_back(token_of(sequence, position));
        plan.positions.push_back(static_cast<int32_t>(position));
        plan.slots.push_back(static_cast<int32_t>((8 * sequence + 7 - position / 16) * 16 + position % 16));
    }
    ++plan.num_sequences;
    plan.query_starts.push_back(static_cast<int32_t>(plan.num_tokens));
    plan.context_lengths.push_back(static_cast<int32_t>(from + count));
    for (int64_t i = 0; i < 8; ++i) plan.block_tables.push_back(static_cast<int32_t>(8 * sequence + 7 - i));
    plan.block_table_starts.push_back(static_cast<int32_t>(plan.block_tables.size()));
}

StepPlan empty_plan() {
    StepPlan plan;
    plan.query_starts = {0};
    plan.block_table_starts = {0};
    plan.wants_logits = true;
    return plan;
}

void check_schedules(WeightType type) {
    const std::atomic<bool> cancelled{false};
    const int64_t lengths[] = {100, 17, 1};
    std::vector<std::vector<float>> alone(3);
    const KvShape shape{KvDtype::bf16, 24, 16, attention.num_kv_heads, attention.head_dim};
    {
        ThreadPool pool(1);
        const auto program = make_program(type, pool);
        const KvCache cache(shape, 2);
        Executor executor(pool);
        StepResult result;
        for (int64_t s = 0; s < 3; ++s) {
            for (int64_t position = 0; position < lengths[s]; ++position) {
                StepPlan plan = empty_plan();
                add_tokens(plan, s, position, 1);
                executor.run(*program, cache, plan, result, cancelled);
                alone[static_cast<size_t>(s)].insert(alone[static_cast<size_t>(s)].end(), result.logits.begin(), result.logits.end());
            }
        }
    }
    for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        const auto program = make_program(type, pool);
        const KvCache cache(shape, 2);
        Executor executor(pool);
        StepResult result;
        int64_t done[] = {0, 0, 0};
        for (int64_t chunk = 37; done[0] < lengths[0] || done[1] < lengths[1] || done[2] < lengths[2]; chunk = 5 + chunk % 31) {
            StepPlan plan = empty_plan();
            std::vector<std::pair<int64_t, int64_t>> parts;
            for (int64_t s = 2; s >= 0; --s) {
                const int64_t count = std::min(chunk, lengths[s] - done[s]);
                if (count <= 0) continue;
                add_tokens(plan, s, done[s], count);
                parts.emplace_back(s, count);
            }
            executor.run(*program, cache, plan, result, cancelled);
            const float* logits = result.logits.data();
            for (const auto& [s, count] : parts) {
                const float* expected = alone[static_cast<size_t>(s)].data() + done[s] * vocab;
                CHECK(std::memcmp(logits, expected, static_cast<size_t>(count * vocab) * sizeof(float)) == 0);
                logits += count * vocab;
                done[s] += count;
            }
        }
    }
}

/// Joined ops give the bits that the ops give one by one.
void check_fusion(WeightType type) {
    const std::atomic<bool> cancelled{false};
    ThreadPool pool(2);
    const KvCache cache({KvDtype::bf16, 24, 16, attention.num_kv_heads, attention.head_dim}, 2);
    Executor executor(pool);
    const auto joined = make_program(type, pool);
    const auto apart = make_program(type, pool, true);
    CHECK(joined->ops().size() + 6 == apart->ops().size());
    for (const int64_t count : {int64_t{1}, int64_t{6}, int64_t{100}}) {
        StepPlan plan = empty_plan();
        add_tokens(plan, 0, 0, count);
        StepResult results[2];
        executor.run(*joined, cache, plan, results[0], cancelled);
        executor.run(*apart, cache, plan, results[1], cancelled);
        CHECK(results[0].logits.size() == static_cast<size_t>(count * vocab));
        CHECK(std::memcmp(results[0].logits.data(), results[1].logits.data(), results[0].logits.size() * sizeof(float)) == 0);
    }
}

/// A value that a later op changes or reads again is not taken from rows encoded before, nor swallowed by a joined op.
void check_fusion_limits() {
    const std::atomic<bool> cancelled{false};
    ThreadPool pool(1);
    const BufferSpan stream{0, 0, hidden};
    const BufferSpan wide{1, 0, 2 * inner};
    const BufferSpan gated{2, 0, inner};
    const BufferSpan last{3, 0, hidden};
    const auto first = random_matrix(WeightType::q8_0, 2 * inner, hidden, 5, pool);
    const auto down = random_matrix(WeightType::q8_0, hidden, inner, 6, pool);
    const auto embedding = random_matrix(WeightType::f32, vocab, hidden, 7, pool);
    const auto run = [&](bool reads_wide, float factor) {
        std::vector<Op> ops;
        ops.push_back(EmbeddingOp{embedding, stream, 1.0f});
        ops.push_back(RmsNormOp{stream, stream, {-1, 0, 0}, ones(hidden), 1e-5f, 0.0f, hidden});
        ops.push_back(LinearOp{stream, wide, first, nullptr});
        ops.push_back(GatedActivationOp{wide, gated, Activation::silu});
        ops.push_back(ScaleOp{stream, factor});
        ops.push_back(LinearOp{stream, {1, 0, 2 * inner}, first, nullptr});
        ops.push_back(GatedActivationOp{{1, 0, 2 * inner}, {2, 0, inner}, Activation::silu});
        ops.push_back(LinearOp{gated, last, down, nullptr});
        if (reads_wide) ops.push_back(AddOp{{1, 0, hidden}, last});
        Program program({hidden, 2 * inner, inner, hidden}, std::move(ops), {}, last, OutputHead{embedding, nullptr, 1.0f, 0.0f},
                        max_tokens);
        CHECK(program.ops().size() == (reads_wide ? 9u : 6u));
        const KvCache cache({KvDtype::f32, 24, 16, 1, 8}, 1);
        Executor executor(pool);
        StepPlan plan = empty_plan();
        add_tokens(plan, 0, 0, 3);
        StepResult result;
        executor.run(program, cache, plan, result, cancelled);
        return result.logits;
    };
    CHECK(run(false, 2.0f) != run(false, 1.0f));
    CHECK(run(true, 1.0f) != run(false, 1.0f));
    CHECK(run(false, 1.0f) == run(false, 1.0f));
}

/// Adds to q and v, gate and up, and down, or to down alone.
std::shared_ptr<const Adapter> make_adapter(WeightType type, bool everywhere, uint64_t seed, ThreadPool& pool) {
    auto adapter = std::make_shared<Adapter>();
    adapter->sites.resize(6);
    const auto part = [&](int64_t column, int64_t rank_begin, int64_t rows, int64_t rank) {
        return AdapterPart{column, rank_begin, 0.5f, random_matrix(type, rows, rank, ++seed, pool)};
    };
    for (size_t layer = 0; layer < 2; ++layer) {
        if (everywhere) {
            adapter->sites[3 * layer] = {random_matrix(type, 5, hidden, ++seed, pool), {part(0, 0, 64, 3), part(96, 3, 32, 2)}};
            adapter->sites[3 * layer + 1] = {random_matrix(type, 4, hidden, ++seed, pool),
                                             {part(0, 0, inner, 3), part(inner, 3, inner, 1)}};
        }
        adapter->sites[3 * layer + 2] = {random_matrix(type, 2, inner, ++seed, pool), {part(0, 0, hidden, 2)}};
    }
    return adapter;
}

/// Sequences under adapters and under none get in one step what each gets alone.
void check_adapters(WeightType type) {
    const std::atomic<bool> cancelled{false};
    const int64_t lengths[] = {40, 9, 1, 120};
    const int32_t chosen[] = {0, -1, 1, 0};
    const WeightType floats = type == WeightType::bf16 ? WeightType::bf16 : WeightType::f32;
    const KvShape shape{KvDtype::f32, 32, 16, attention.num_kv_heads, attention.head_dim};
    std::vector<std::vector<float>> alone;
    for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        const auto program = make_program(type, pool);
        const KvCache cache(shape, 2);
        Executor executor(pool);
        StepResult result;
        const std::vector<std::shared_ptr<const Adapter>> adapters{make_adapter(floats, true, 50, pool),
                                                                   make_adapter(floats, false, 90, pool)};
        StepPlan together = empty_plan();
        for (int64_t s = 0; s < 4; ++s) {
            add_tokens(together, s, 0, lengths[s]);
            if (threads > 1) continue;
            StepPlan plan = empty_plan();
            add_tokens(plan, s, 0, lengths[s]);
            executor.run(*program, cache, plan, result, cancelled);
            const std::vector<float> plain = result.logits;
            if (chosen[s] >= 0) {
                plan.adapters = {adapters[static_cast<size_t>(chosen[s])]};
                plan.sequence_adapters = {0};
            }
            executor.run(*program, cache, plan, result, cancelled);
            CHECK((result.logits == plain) == (chosen[s] < 0));
            alone.push_back(result.logits);
        }
        together.adapters = adapters;
        together.sequence_adapters.assign(chosen, chosen + 4);
        executor.run(*program, cache, together, result, cancelled);
        const float* logits = result.logits.data();
        for (const std::vector<float>& expected : alone) {
            CHECK(std::memcmp(logits, expected.data(), expected.size() * sizeof(float)) == 0);
            logits += expected.size();
        }
    }
}

void check_output_rows() {
    const std::atomic<bool> cancelled{false};
    ThreadPool pool(2);
    const auto program = make_program(WeightType::f32, pool);
    const KvCache cache({KvDtype::f32, 24, 16, attention.num_kv_heads, attention.head_dim}, 2);
    Executor executor(pool);
    StepPlan plan = empty_plan();
    add_tokens(plan, 0, 0, 90);
    plan.outputs.clear();
    SamplerState::Spec spec;
    spec.frequency_penalty = 1.0f;
    SamplerState state(spec);
    for (int32_t i = 0; i < 90; ++i) {
        OutputRow row = output_row(static_cast<OutputKind>(i % 3), i);
        row.target = i % vocab;
        row.wants_logprobs = i % 2 == 0;
        row.num_top = row.wants_logprobs ? i % 5 : 0;
        row.sampling.temperature = i % 4 == 0 ? 0.8f : 0.0f;
        row.sampling.top_k = i % 7;
        if (i == 0) row.sampling.state = &state;
        plan.outputs.push_back(row);
    }
    StepResult result;
    executor.run(*program, cache, plan, result, cancelled);
    size_t logits_at = 0;
    size_t hidden_at = 0;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
        CHECK(result.errors[i] == 0);
        if (plan.outputs[i].kind == OutputKind::hidden) {
            CHECK(result.tokens[i] == -1 && result.hidden[hidden_at] != 0.0f);
            hidden_at += hidden;
            continue;
        }
        const float* logits = result.logits.data() + logits_at;
        logits_at += vocab;
        const int32_t token = result.tokens[i];
        CHECK(token >= 0 && token < vocab);
        if (plan.outputs[i].kind == OutputKind::score) CHECK(token == plan.outputs[i].target);
        if (!plan.outputs[i].wants_logprobs) continue;
        double total = 0;
        for (int64_t k = 0; k < vocab; ++k) total += std::exp(double{logits[k]} - logits[token]);
        CHECK(std::abs(result.logprobs[i] + std::log(total)) < 1e-5);
    }
    CHECK(logits_at == result.logits.size() && hidden_at == result.hidden.size());

    std::vector<float> logits(vocab, 0.0f);
    state.edit(logits.data(), vocab, false);
    CHECK(logits[static_cast<size_t>(result.tokens[0])] == -1.0f);

    const std::atomic<bool> stopped{true};
    executor.run(*program, cache, plan, result, stopped);
}

/// Decode steps of a batch that has been there before: greedy, sampled and with logprobs.
void check_allocations() {
    const std::atomic<bool> cancelled{false};
    ThreadPool pool(2);
    const auto program = make_program(WeightType::q8_0, pool);
    const KvCache cache({KvDtype::f16, 24, 16, attention.num_kv_heads, attention.head_dim}, 2);
    Executor executor(pool);
    StepResult result;
    for (int64_t position = 0; position < 100; ++position) {
        StepPlan plan = empty_plan();
        plan.wants_logits = false;
        for (int64_t sequence = 0; sequence < 3; ++sequence) {
            add_tokens(plan, sequence, position, 1);
            OutputRow& row = plan.outputs.back();
            row.kind = OutputKind::sample;
            row.wants_logprobs = sequence == 1;
            row.num_top = sequence == 1 ? 5 : 0;
            row.sampling.temperature = sequence == 0 ? 0.0f : 0.8f;
            row.sampling.top_k = sequence == 1 ? 20 : 0;
            row.sampling.top_p = sequence == 2 ? 0.9f : 1.0f;
            row.sampling.index = static_cast<uint64_t>(position);
        }
        const int64_t before = num_allocations.load();
        executor.run(*program, cache, plan, result, cancelled);
        const int64_t after = num_allocations.load();
        if (position > 0) CHECK(after == before);
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    for (const test::Target& target : test::targets()) {
        set_isa_for_test(target.isa, target.bf16);
        for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::q8_0}) test::check_schedules(type);
        for (const WeightType type : {WeightType::f16, WeightType::bf16, WeightType::q4_0}) test::check_fusion(type);
        for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::q8_0}) test::check_adapters(type);
        test::check_fusion_limits();
        test::check_output_rows();
        test::check_allocations();
    }
    return test::finish("program_test");
}
