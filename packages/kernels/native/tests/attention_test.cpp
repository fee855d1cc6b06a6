// Paged attention of every instruction set against double sums, and its independence of tiles, blocks and neighbours.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "../core/isa.h"
#include "../ops/attention.h"
#include "../program/kv_cache.h"
#include "check.h"

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

/// Runs the sequence in steps of at most `chunk` tokens and returns all output rows.
Floats run(const Case& c, const Sequence& sequence, int64_t chunk, uint32_t seed, ThreadPool& pool) {
    const int64_t num_blocks = (c.length + c.block_size - 1) / c.block_size;
    const KvShape shape{c.dtype, num_blocks + 2, c.block_size, c.spec.num_kv_heads, c.spec.head_dim};
    const KvCache cache(shape, 1);
    // What earlier owners left behind must never be felt: NaN everywhere.
    for (const AlignedMemory* memory : {&cache.layer(0).k, &cache.layer(0).v}) std::memset(memory->data(), 0xff, memory->size());
    std::vector<int32_t> table(static_cast<size_t>(num_blocks));
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i + 1);
    std::shuffle(table.begin(), table.end(), std::mt19937(seed));
    const std::vector<int32_t> table_starts{0, static_cast<int32_t>(num_blocks)};

    const int64_t q_width = c.spec.num_heads * c.spec.head_dim;
    const int64_t kv_width = c.spec.num_kv_heads * c.spec.head_dim;
    Floats out(sequence.q.size());
    Attention attention(pool);
    for (int64_t begin = 0; begin < c.length; begin += chunk) {
        const int64_t count = std::min(chunk, c.length - begin);
        std::vector<int32_t> slots;
        for (int64_t position = begin; position < begin + count; ++position) {
            slots.push_back(static_cast<int32_t>(table[static_cast<size_t>(position / c.block_size)] * c.block_size +
                                                 position % c.block_size));
        }
        const std::vector<int32_t> starts{0, static_cast<int32_t>(count)};
        const std::vector<int32_t> contexts{static_cast<int32_t>(begin + count)};
        const StepLayout step{count, 1, slots.data(), starts.data(), contexts.data(), table.data(), table_starts.data()};
        const auto rows = [&](const Floats& values, int64_t width) {
            return Rows{const_cast<float*>(values.data()) + begin * width, width};
        };
        attention.store(shape, cache.layer(0), step, rows(sequence.k, kv_width), rows(sequence.v, kv_width));
        attention.attend(c.spec, shape, cache.layer(0), step, rows(sequence.q, q_width), rows(out, q_width));
    }
    return out;
}

void check_against_reference(const Case& c, const Sequence& sequence, const Floats& out) {
    const AttentionSpec& spec = c.spec;
    const int64_t dim = spec.head_dim;
    const int64_t kv_width = spec.num_kv_heads * dim;
    for (int64_t position = 0; position < c.length; ++position) {
        const int64_t first = spec.window > 0 ? std::max<int64_t>(0, position - spec.window + 1) : 0;
        for (int64_t head = 0; head < spec.num_heads; ++head) {
            const float* q = &sequence.q[static_cast<size_t>((position * spec.num_heads + head) * dim)];
            const int64_t kv = head / (spec.num_heads / spec.num_kv_heads) * dim;
            std::vector<double> weights;
            double largest = -1e300;
            for (int64_t at = first; at <= position; ++at) {
                double score = 0;
                for (int64_t d = 0; d < dim; ++d) score += double{q[d]} * sequence.k[static_cast<size_t>(at * kv_width + kv + d)];
                score *= spec.scale;
                if (spec.soft_cap > 0) score = spec.soft_cap * std::tanh(score / spec.soft_cap);
                weights.push_back(score);
                largest = std::max(largest, score);
            }
            double total = 0;
            for (double& weight : weights) total += weight = std::exp(weight - largest);
            for (int64_t d = 0; d < dim; ++d) {
                double expected = 0;
                for (size_t i = 0; i < weights.size(); ++i) {
                    expected += weights[i] / total * sequence.v[static_cast<size_t>((first + static_cast<int64_t>(i)) * kv_width + kv + d)];
                }
                const float actual = out[static_cast<size_t>((position * spec.num_heads + head) * dim + d)];
                CHECK(std::abs(actual - expected) < 2e-5);
            }
        }
    }
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

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    const Case cases[] = {
        {{4, 2, 16, 0.25f, 0.0f, 0}, KvDtype::f32, 16, 150},   {{7, 1, 8, 0.3f, 0.0f, 0}, KvDtype::bf16, 5, 90},
        {{2, 2, 40, 0.15f, 0.0f, 70}, KvDtype::f16, 32, 200},  {{3, 3, 64, 0.125f, 12.0f, 0}, KvDtype::bf16, 1, 70},
        {{8, 2, 128, 0.09f, 0.0f, 3}, KvDtype::f32, 256, 140}, {{2, 1, 24, 0.2f, 3.0f, 64}, KvDtype::f16, 8, 129},
    };
    ThreadPool one(1);
    ThreadPool three(3);
    for (const Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512}) {
        if (!isa_supported(isa)) continue;
        set_isa_for_test(isa, false);
        for (const Case& c : cases) {
            const Sequence sequence = make_sequence(c, 11);
            const Floats whole = run(c, sequence, c.length, 1, three);
            check_against_reference(c, sequence, whole);
            for (const int64_t chunk : {int64_t{1}, int64_t{13}, int64_t{64}, int64_t{65}}) {
                CHECK(same_bits(whole, run(c, sequence, chunk, static_cast<uint32_t>(chunk), chunk % 2 == 0 ? one : three)));
            }
            Case other_blocks = c;
            other_blocks.block_size = c.block_size == 16 ? 7 : 16;
            CHECK(same_bits(whole, run(other_blocks, sequence, 50, 3, three)));
            check_poison(c, three);
        }
    }
    return finish("attention_test");
}
