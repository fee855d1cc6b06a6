// Recurrent ops of every instruction set: kernels against plain double arithmetic, and a state runner whose sequences are cut at random
// against one that takes them whole.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "../ops/recurrent/state_runner.h"
#include "support/check.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

using Floats = std::vector<float>;

Floats noise(size_t count, uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    Floats values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

/// One tile over tokens, against the definition in double.
void test_recurrence(const RecurrentKernels& kernels, bool is_delta, int64_t key_dim, int64_t columns) {
    constexpr int64_t tokens = 9;
    const Floats q = noise(static_cast<size_t>(tokens * key_dim), 1);
    Floats k = noise(static_cast<size_t>(tokens * key_dim), 2);
    for (int64_t t = 0; t < tokens; ++t) kernels.normalise(k.data() + t * key_dim, key_dim, 1e-6f, 1.0f, k.data() + t * key_dim);
    const Floats v = noise(static_cast<size_t>(tokens * columns), 3);
    Floats gates(2 * tokens);
    for (size_t t = 0; t < tokens; ++t) gates[2 * t] = 0.9f - 0.05f * static_cast<float>(t), gates[2 * t + 1] = 0.3f;
    Floats state(static_cast<size_t>(key_dim * state_tile), 0.0f);
    Floats out(static_cast<size_t>(tokens * columns) + 1, 42.0f);
    const RecurrenceRun run{tokens, q.data(), k.data(), key_dim, key_dim, v.data(), columns, gates.data(), 2, out.data(), columns, columns};
    (is_delta ? kernels.delta_rule : kernels.accumulate)(state.data(), key_dim, run);
    std::vector<double> expected(static_cast<size_t>(key_dim * columns), 0.0);
    const auto at = [&](int64_t row, int64_t column) -> double& { return expected[static_cast<size_t>(row * columns + column)]; };
    for (int64_t t = 0; t < tokens; ++t) {
        const double decay = gates[static_cast<size_t>(2 * t)];
        const double strength = gates[static_cast<size_t>(2 * t + 1)];
        for (int64_t column = 0; column < columns; ++column) {
            double known = 0;
            for (int64_t i = 0; i < key_dim; ++i) known += decay * at(i, column) * k[static_cast<size_t>(t * key_dim + i)];
            const double written = strength * (v[static_cast<size_t>(t * columns + column)] - (is_delta ? known : 0.0));
            double sum = 0;
            for (int64_t i = 0; i < key_dim; ++i) {
                at(i, column) = decay * at(i, column) + k[static_cast<size_t>(t * key_dim + i)] * written;
                sum += q[static_cast<size_t>(t * key_dim + i)] * at(i, column);
            }
            CHECK(std::abs(out[static_cast<size_t>(t * columns + column)] - sum) < 2e-5 * static_cast<double>(key_dim));
        }
    }
    CHECK(out.back() == 42.0f);
}

/// A sequence's rows and what runs over them.
struct Layer {
    int64_t width;
    Floats in;
    Floats weight;
    Floats rates;
    Floats biases;
    ConvolutionSpec convolution;
    RecurrenceSpec recurrence;
    int64_t key_width;
    int64_t value_width;
};

constexpr int64_t num_tokens = 40;
constexpr int64_t max_draft = 3;

Layer make_layer() {
    Layer layer{};
    layer.recurrence.num_heads = 4;
    layer.recurrence.num_key_heads = 2;
    layer.recurrence.key_dim = 8;
    layer.recurrence.value_dim = 40;
    layer.recurrence.is_delta = true;
    layer.key_width = layer.recurrence.key_width();
    layer.value_width = layer.recurrence.value_width();
    layer.width = 2 * layer.key_width + layer.value_width + 8;
    layer.in = noise(static_cast<size_t>(num_tokens * layer.width), 4);
    layer.weight = noise(static_cast<size_t>(3 * layer.width), 5);
    layer.rates = {0.1f, 0.5f, 1.0f, 2.0f};
    layer.biases = {0.0f, 0.1f, -0.3f, 0.2f};
    layer.convolution = {0, layer.width, 3, nullptr, nullptr, true};
    layer.recurrence.state = 1;
    return layer;
}

StateCache make_cache(const Layer& layer) {
    const RecurrenceSpec& spec = layer.recurrence;
    const int64_t entry = spec.key_width() + spec.value_width() + 2 * spec.num_heads;
    return StateCache({3, max_draft, {(2 + max_draft) * layer.width, spec.num_heads * spec.num_tiles() * spec.tile_floats() + max_draft * entry}});
}

/// Runs tokens [first, context) of the sequence in slot 0; the slot then stands for `end`.
void run_part(StateRunner& runner, const StateCache& cache, const Layer& layer, int64_t start, int64_t first, int64_t context, int64_t end,
              int64_t snapshot, int32_t snapshot_slot, int32_t source, Floats& out) {
    const int32_t starts[] = {0, static_cast<int32_t>(context - first)};
    const int32_t contexts[] = {static_cast<int32_t>(context)};
    const StepLayout step{context - first, 1, nullptr, starts, contexts, nullptr, nullptr};
    StateLayout layout{{0}, {source}, {static_cast<int32_t>(start)}, {static_cast<int32_t>(end)}, {0, snapshot > 0 ? 1 : 0}, {}, {}};
    if (snapshot > 0) layout.snapshot_positions = {static_cast<int32_t>(snapshot)}, layout.snapshot_slots = {snapshot_slot};
    runner.begin(step, layout, cache);
    Floats in(layer.in.begin() + first * layer.width, layer.in.begin() + context * layer.width);
    Floats convolved(in.size());
    ConvolutionSpec convolution = layer.convolution;
    convolution.weight = layer.weight.data();
    runner.convolve(convolution, {in.data(), layer.width}, {convolved.data(), layer.width});
    RecurrenceSpec recurrence = layer.recurrence;
    recurrence.rates = layer.rates.data();
    recurrence.biases = layer.biases.data();
    float* rows = convolved.data();
    const int64_t gates = 2 * layer.key_width + layer.value_width;
    const auto at = [&](int64_t column) { return Rows{rows + column, layer.width}; };
    runner.recur(recurrence, {at(0), at(layer.key_width), at(2 * layer.key_width), at(gates), at(gates + 4),
                              {out.data() + first * layer.value_width, layer.value_width}});
}

void test_cuts(int threads) {
    ThreadPool pool(threads);
    StateRunner runner(pool);
    const Layer layer = make_layer();
    const size_t size = static_cast<size_t>(num_tokens * layer.value_width);
    Floats whole(size);
    {
        const StateCache cache = make_cache(layer);
        run_part(runner, cache, layer, 0, 0, num_tokens, num_tokens, 0, 1, -1, whole);
    }
    for (uint32_t seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        const StateCache cache = make_cache(layer);
        Floats out(size);
        int64_t start = 0;
        int64_t done = 0;
        int32_t source = -1;
        int32_t snapshot_slot = 1;
        while (done < num_tokens) {
            const int64_t drafts = std::min<int64_t>(static_cast<int64_t>(random() % (max_draft + 1)), num_tokens - done - 1);
            const int64_t context = std::min<int64_t>(num_tokens, done + 1 + drafts + static_cast<int64_t>(random() % 4));
            const int64_t end = std::max(done + 1, context - drafts);
            const int64_t snapshot = start + 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(end - start));
            run_part(runner, cache, layer, start, done, context, end, snapshot, snapshot_slot, source, out);
            // Go on from the snapshot at times, else with some of the drafts accepted.
            if (random() % 3 == 0) {
                start = done = snapshot;
                source = snapshot_slot;
                // What a step reads, it does not write.
                snapshot_slot = 3 - snapshot_slot;
                continue;
            }
            start = end;
            done = end + static_cast<int64_t>(random() % static_cast<uint32_t>(context - end + 1));
            source = 0;
        }
        CHECK(std::equal(out.begin(), out.end(), whole.begin()));
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    for (const test::Target& target : test::targets()) {
        set_isa_for_test(target.isa, target.bf16);
        for (const bool is_delta : {true, false}) {
            for (const int64_t key_dim : {int64_t{4}, int64_t{128}}) {
                for (const int64_t columns : {int64_t{1}, int64_t{17}, int64_t{32}}) {
                    test::test_recurrence(recurrent_kernels(), is_delta, key_dim, columns);
                }
            }
        }
        for (const int threads : {1, 3}) test::test_cuts(threads);
    }
    return test::finish("recurrent_test");
}
