// Paged attention of every instruction set against double sums, and its independence of tiles, blocks and neighbours.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "../core/isa.h"
#include "../ops/attention/attention.h"
#include "../program/kv_cache.h"
#include "support/check.h"
#include "support/op_cases.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

using Floats = std::vector<float>;

struct Case {
    AttentionSpec spec;
    KvDtype dtype;
    int64_t block_size;
    int64_t length;
};

/// q, k, v of one sequence, one row per position.
struct Sequence {
    Floats q;
    Floats k;
    Floats v;
};

Sequence make_sequence(const Case& c, uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](int64_t width) {
        Floats values(static_cast<size_t>(c.length * width));
        // Multiples of 1/16 are exact in every cache type.
        for (float& value : values) value = std::round(normal(generator) * 16.0f) / 16.0f;
        return values;
    };
    return {fill(c.spec.num_heads * c.spec.head_dim), fill(c.spec.num_kv_heads * c.spec.head_dim),
            fill(c.spec.num_kv_heads * c.spec.head_dim)};
}

/// A sequence's next tokens in a step.
struct Turn {
    size_t sequence;
    int64_t count;
};

/// Runs sequences over given block tables, each from position `starts[s]` on, a list of turns per step; returns all output
/// rows of each (zero before its start).
std::vector<Floats> run_steps(const Case& c, const std::vector<Sequence>& sequences,
                              const std::vector<std::vector<int32_t>>& tables, std::vector<int64_t> done, int32_t num_blocks,
                              const std::vector<std::vector<Turn>>& steps, ThreadPool& pool) {
    const KvShape shape{c.dtype, num_blocks, c.block_size, c.spec.num_kv_heads, c.spec.head_dim};
    const KvCache cache(shape, 1);
    // What earlier owners left behind must never be felt: NaN everywhere.
    for (const AlignedMemory* memory : {&cache.layer(0).k, &cache.layer(0).v}) std::memset(memory->data(), 0xff, memory->size());
    const size_t q_width = static_cast<size_t>(c.spec.num_heads * c.spec.head_dim);
    const size_t kv_width = static_cast<size_t>(c.spec.num_kv_heads * c.spec.head_dim);
    std::vector<Floats> outputs;
    for (const Sequence& sequence : sequences) outputs.emplace_back(sequence.q.size());
    Attention attention(pool);
    for (const std::vector<Turn>& turns : steps) {
        std::vector<int32_t> slots, starts{0}, contexts, block_tables, table_starts{0};
        Floats q, k, v;
        for (const Turn& turn : turns) {
            const Sequence& sequence = sequences[turn.sequence];
            const std::vector<int32_t>& table = tables[turn.sequence];
            const auto append = [&](Floats& to, const Floats& from, size_t width) {
                const auto begin = from.begin() + done[turn.sequence] * static_cast<int64_t>(width);
                to.insert(to.end(), begin, begin + turn.count * static_cast<int64_t>(width));
            };
            append(q, sequence.q, q_width);
            append(k, sequence.k, kv_width);
            append(v, sequence.v, kv_width);
            for (int64_t position = done[turn.sequence]; position < done[turn.sequence] + turn.count; ++position) {
                slots.push_back(static_cast<int32_t>(table[static_cast<size_t>(position / c.block_size)] * c.block_size +
                                                     position % c.block_size));
            }
            starts.push_back(static_cast<int32_t>(slots.size()));
            contexts.push_back(static_cast<int32_t>(done[turn.sequence] + turn.count));
            block_tables.insert(block_tables.end(), table.begin(), table.end());
            table_starts.push_back(static_cast<int32_t>(block_tables.size()));
        }
        const StepLayout step{static_cast<int64_t>(slots.size()), static_cast<int64_t>(turns.size()), slots.data(),
                              starts.data(),                      contexts.data(),                    block_tables.data(),
                              table_starts.data()};
        Floats out(q.size());
        const auto rows = [](Floats& values, size_t width) { return Rows{values.data(), static_cast<int64_t>(width)}; };
        attention.begin(step);
        attention.store(shape, cache.layer(0), rows(k, kv_width), rows(v, kv_width));
        attention.attend(c.spec, shape, cache.layer(0), rows(q, q_width), rows(out, q_width));
        size_t row = 0;
        for (const Turn& turn : turns) {
            const size_t count = static_cast<size_t>(turn.count);
            std::copy_n(out.begin() + static_cast<int64_t>(row * q_width), count * q_width,
                        outputs[turn.sequence].begin() + done[turn.sequence] * static_cast<int64_t>(q_width));
            done[turn.sequence] += turn.count;
            row += count;
        }
    }
    return outputs;
}

/// Runs the sequence in steps of at most `chunk` tokens over shuffled blocks and returns all output rows.
Floats run(const Case& c, const Sequence& sequence, int64_t chunk, uint32_t seed, ThreadPool& pool) {
    const int64_t num_blocks = (c.length + c.block_size - 1) / c.block_size;
    std::vector<int32_t> table(static_cast<size_t>(num_blocks));
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i + 1);
    std::shuffle(table.begin(), table.end(), std::mt19937(seed));
    std::vector<std::vector<Turn>> steps;
    for (int64_t begin = 0; begin < c.length; begin += chunk) steps.push_back({{0, std::min(chunk, c.length - begin)}});
    return run_steps(c, {sequence}, {table}, {0}, static_cast<int32_t>(num_blocks + 2), steps, pool)[0];
}

/// What an int8 cache keeps of rows of `dim` values.
void quantise(Floats& values, int64_t dim) {
    for (size_t begin = 0; begin < values.size(); begin += static_cast<size_t>(dim)) {
        float most = 0.0f;
        for (size_t i = begin; i < begin + static_cast<size_t>(dim); ++i) most = std::max(most, std::abs(values[i]));
        const float scale = most / 127.0f;
        if (scale == 0.0f) continue;
        for (size_t i = begin; i < begin + static_cast<size_t>(dim); ++i) {
            values[i] = std::nearbyint(values[i] * (127.0f / most)) * scale;
        }
    }
}

/// Attention by sums of doubles: all output rows.
std::vector<double> reference(const Case& c, Sequence sequence) {
    if (c.dtype == KvDtype::int8) {
        quantise(sequence.k, c.spec.head_dim);
        quantise(sequence.v, c.spec.head_dim);
    }
    const AttentionSpec& spec = c.spec;
    const int64_t dim = spec.head_dim;
    const int64_t kv_width = spec.num_kv_heads * dim;
    std::vector<double> out(sequence.q.size());
    for (int64_t position = 0; position < c.length; ++position) {
        const int64_t in_window = spec.window > 0 ? std::max<int64_t>(0, position - spec.window + 1) : 0;
        const int64_t first = spec.chunk > 0 ? position - position % spec.chunk : in_window;
        for (int64_t head = 0; head < spec.num_heads; ++head) {
            const int64_t row = (position * spec.num_heads + head) * dim;
            const float* q = sequence.q.data() + row;
            const int64_t kv = head / (spec.num_heads / spec.num_kv_heads) * dim;
            std::vector<double> weights;
            double largest = -1e300;
            for (int64_t at = first; at <= position; ++at) {
                const float* k = sequence.k.data() + at * kv_width + kv;
                double score = 0;
                for (int64_t d = 0; d < dim; ++d) score += double{q[d]} * k[d];
                score *= spec.scale;
                if (spec.soft_cap > 0) score = spec.soft_cap * std::tanh(score / spec.soft_cap);
                weights.push_back(score);
                largest = std::max(largest, score);
            }
            double total = 0;
            for (double& weight : weights) total += weight = std::exp(weight - largest);
            for (int64_t at = first; at <= position; ++at) {
                const double weight = weights[static_cast<size_t>(at - first)] / total;
                const float* v = sequence.v.data() + at * kv_width + kv;
                for (int64_t d = 0; d < dim; ++d) out[static_cast<size_t>(row + d)] += weight * v[d];
            }
        }
    }
    return out;
}

void check_close(const Floats& actual, const std::vector<double>& expected, double tolerance) {
    CHECK(actual.size() == expected.size());
    bool close = true;
    for (size_t i = 0; i < expected.size(); ++i) close = close && std::abs(actual[i] - expected[i]) < tolerance;
    CHECK(close);
}

bool same_bits(const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A row that is not finite must not reach rows before it, chunked or not.
void check_poison(const Case& c, ThreadPool& pool) {
    Sequence sequence = make_sequence(c, 5);
    const Floats clean = run(c, sequence, c.length, 1, pool);
    const int64_t from = c.length / 2;
    const int64_t kv_width = c.spec.num_kv_heads * c.spec.head_dim;
    for (int64_t i = from * kv_width; i < (from + 1) * kv_width; ++i) {
        sequence.k[static_cast<size_t>(i)] = sequence.v[static_cast<size_t>(i)] = std::nanf("");
    }
    const Floats poisoned = run(c, sequence, c.length, 1, pool);
    const size_t before = static_cast<size_t>(from * c.spec.num_heads * c.spec.head_dim);
    CHECK(std::memcmp(clean.data(), poisoned.data(), before * sizeof(float)) == 0);
    CHECK(std::isnan(poisoned[before]));
}

/// Sequences whose first `shared` positions lie in common blocks, some of them with more in common, get the bits that they
/// get alone, in whatever turns.
void check_shared_prefix(const Case& c, ThreadPool& alone_pool, ThreadPool& pool) {
    std::mt19937 generator(17);
    const size_t count = 7;
    std::vector<Sequence> sequences;
    std::vector<std::vector<int32_t>> tables;
    std::vector<int64_t> starts;
    std::vector<Floats> alone;
    int32_t next_block = 0;
    for (size_t s = 0; s < count; ++s) {
        // The first is the trunk; the second forks from it late, the others early, the last two from another one.
        const size_t parent = s >= 5 ? 4 : 0;
        const int64_t fork = s == 0 ? 0 : (s == 1 ? c.length * 9 / 10 : c.length * (10 + static_cast<int64_t>(s)) / 20) / c.block_size * c.block_size;
        Sequence sequence = make_sequence(c, static_cast<uint32_t>(100 + s));
        std::vector<int32_t> table;
        if (s > 0) {
            const auto inherit = [&](Floats& to, const Floats& from, int64_t width) {
                std::copy_n(from.begin(), fork * width, to.begin());
            };
            inherit(sequence.q, sequences[parent].q, c.spec.num_heads * c.spec.head_dim);
            inherit(sequence.k, sequences[parent].k, c.spec.num_kv_heads * c.spec.head_dim);
            inherit(sequence.v, sequences[parent].v, c.spec.num_kv_heads * c.spec.head_dim);
            table.assign(tables[parent].begin(), tables[parent].begin() + fork / c.block_size);
        }
        while (static_cast<int64_t>(table.size()) * c.block_size < c.length) table.push_back(next_block++);
        alone.push_back(run(c, sequence, c.length, 1, alone_pool));
        sequences.push_back(std::move(sequence));
        tables.push_back(std::move(table));
        starts.push_back(fork);
    }
    std::vector<std::vector<Turn>> steps;
    std::vector<int64_t> left;
    for (const int64_t start : starts) left.push_back(c.length - start);
    // The parents' prefixes first, then everybody in small turns.
    for (const size_t parent : {size_t{0}, size_t{4}}) {
        steps.push_back({{parent, left[parent] - 5}});
        left[parent] = 5;
    }
    for (;;) {
        std::vector<Turn> turns;
        for (size_t s = 0; s < count; ++s) {
            const int64_t turn = std::min<int64_t>(left[s], generator() % 4 == 0 ? 20 : static_cast<int64_t>(generator() % 3));
            if (turn > 0) turns.push_back({s, turn});
            left[s] -= turn;
        }
        std::shuffle(turns.begin(), turns.end(), generator);
        if (turns.empty() && std::all_of(left.begin(), left.end(), [](int64_t n) { return n == 0; })) break;
        if (!turns.empty()) steps.push_back(turns);
    }
    const std::vector<Floats> shared = run_steps(c, sequences, tables, starts, next_block, steps, pool);
    for (size_t s = 0; s < count; ++s) {
        const size_t from = static_cast<size_t>(starts[s] * c.spec.num_heads * c.spec.head_dim);
        CHECK(std::memcmp(alone[s].data() + from, shared[s].data() + from, (alone[s].size() - from) * sizeof(float)) == 0);
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    std::vector<Case> cases = {
        {{4, 2, 16, 0.25f, 0.0f, 0}, KvDtype::f32, 16, 150},   {{7, 1, 8, 0.3f, 0.0f, 0}, KvDtype::bf16, 5, 90},
        {{2, 2, 40, 0.15f, 0.0f, 70}, KvDtype::f16, 32, 200},  {{3, 3, 64, 0.125f, 12.0f, 0}, KvDtype::bf16, 1, 70},
        {{8, 2, 128, 0.09f, 0.0f, 3}, KvDtype::f32, 256, 140}, {{2, 1, 24, 0.2f, 3.0f, 64}, KvDtype::f16, 8, 129},
        {{7, 1, 64, 0.125f, 0.0f, 0}, KvDtype::bf16, 16, 600}, {{4, 2, 32, 0.2f, 0.0f, 0}, KvDtype::int8, 16, 300},
        {{3, 1, 24, 0.2f, 8.0f, 290}, KvDtype::int8, 3, 560},  {{2, 1, 16, 0.25f, 0.0f, 75}, KvDtype::bf16, 16, 530},
        {{5, 1, 16, 0.25f, 0.0f, 0}, KvDtype::f16, 16, 700},   {{4, 2, 32, 0.2f, 0.0f, 150}, KvDtype::bf16, 32, 330},
        {{2, 1, 48, 0.2f, 0.0f, 0}, KvDtype::bf16, 128, 200},
        // Heads that no vector divides.
        {{2, 1, 12, 0.3f, 0.0f, 0}, KvDtype::bf16, 16, 150},   {{4, 2, 20, 0.25f, 0.0f, 0}, KvDtype::f32, 16, 150},
        {{3, 3, 28, 0.2f, 6.0f, 40}, KvDtype::f16, 5, 90},     {{2, 2, 100, 0.1f, 0.0f, 0}, KvDtype::int8, 16, 130},
        {{2, 1, 10, 0.3f, 0.0f, 0}, KvDtype::int8, 3, 90},     {{6, 2, 6, 0.4f, 0.0f, 0}, KvDtype::bf16, 7, 70},
        {{2, 1, 2, 0.7f, 0.0f, 0}, KvDtype::f16, 16, 70},
        // One to eight rows a head, in the order of blocks.
        {{6, 6, 16, 0.25f, 0.0f, 0}, KvDtype::f16, 16, 140},   {{12, 3, 48, 0.15f, 9.0f, 0}, KvDtype::f16, 16, 330},
        {{10, 2, 80, 0.1f, 0.0f, 150}, KvDtype::f16, 16, 260}, {{14, 2, 64, 0.125f, 0.0f, 0}, KvDtype::bf16, 16, 200},
        {{16, 2, 32, 0.2f, 0.0f, 0}, KvDtype::f32, 16, 200},
    };
    for (const int64_t chunk : {20, 64, 150}) {
        cases.push_back({{4, 2, 16, 0.25f, 0.0f, 0}, chunk == 64 ? KvDtype::int8 : KvDtype::bf16, 16, 170});
        cases.back().spec.chunk = chunk;
    }
    if (quick()) {
        // Others are as long, with a tenth of the work.
        cases[6].length = 90;
    } else {
        for (const AttentionCase& model : kAttentionModels) cases.push_back({model.spec, KvDtype::bf16, 16, 70});
    }
    ThreadPool one(1);
    ThreadPool three(3);
    ThreadPool five(5);
    for (const Case& c : cases) {
        const Sequence sequence = make_sequence(c, 11);
        const std::vector<double> expected = reference(c, sequence);
        for (const Target& target : targets()) {
            set_isa_for_test(target.isa, target.bf16);
            const Floats whole = run(c, sequence, c.length, 1, three);
            const bool rounds = has_avx512_bf16() && (c.dtype == KvDtype::bf16 || c.dtype == KvDtype::int8);
            check_close(whole, expected, rounds ? 1.5e-2 : 2e-5);
            for (const int64_t chunk : {int64_t{1}, int64_t{13}, int64_t{64}, int64_t{65}}) {
                if (quick() && (chunk == 13 || chunk == 64)) continue;
                CHECK(same_bits(whole, run(c, sequence, chunk, static_cast<uint32_t>(chunk), chunk % 2 == 0 ? one : five)));
            }
            Case other_blocks = c;
            other_blocks.block_size = c.block_size == 16 ? 7 : 16;
            CHECK(same_bits(whole, run(other_blocks, sequence, 50, 3, three)));
            check_poison(c, three);
            check_shared_prefix(c, one, three);
            if (!quick()) check_shared_prefix(other_blocks, three, one);
        }
    }
    return finish("attention_test");
}
