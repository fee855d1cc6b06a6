// Selection borders, the random stream, sampler states and whole draws against sorting and plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "../core/isa.h"
#include "../ops/kernels.h"
#include "../sampling/cut.h"
#include "../sampling/logprobs.h"
#include "../sampling/philox.h"
#include "../sampling/row_sampler.h"
#include "support/check.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

using Floats = std::vector<float>;

std::vector<int32_t> best_first(const Floats& values) {
    std::vector<int32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
    });
    return order;
}

/// Rows that are peaked, flat, tied or tiny; the largest value is 1, as of weights.
Floats weights_of_kind(int kind, size_t count, std::mt19937& generator) {
    std::normal_distribution<float> normal;
    Floats weights(count);
    for (float& weight : weights) {
        switch (kind) {
            case 0: weight = std::exp(-std::abs(normal(generator)) * 6); break;
            case 1: weight = 1.0f; break;
            case 2: weight = static_cast<float>(1 + generator() % 4) / 4; break;
            default: weight = std::ldexp(1.0f, -static_cast<int>(generator() % 120)); break;
        }
    }
    weights[generator() % count] = 1.0f;
    return weights;
}

void test_cuts() {
    std::mt19937 generator(1);
    for (int round = 0; round < (quick() ? 200 : 2000); ++round) {
        const size_t count = 1 + generator() % 600;
        const Floats weights = weights_of_kind(round % 4, count, generator);
        const std::vector<int32_t> order = best_first(weights);
        const auto members = [&](const Cut& cut) {
            std::set<int32_t> kept;
            int64_t ties = cut.ties;
            for (size_t i = 0; i < count; ++i) {
                if (weights[i] > cut.weight || (weights[i] == cut.weight && ties-- > 0)) kept.insert(static_cast<int32_t>(i));
            }
            return kept;
        };
        const int64_t keep = 1 + static_cast<int64_t>(generator() % count);
        const std::set<int32_t> by_count = members(cut_at_count(weights.data(), static_cast<int64_t>(count), keep));
        CHECK(by_count == std::set<int32_t>(order.begin(), order.begin() + keep));

        double total = 0;
        for (const float weight : weights) total += weight;
        const double mass = total * static_cast<double>(generator() % 1001) / 1000;
        const std::set<int32_t> by_mass = members(cut_at_mass(weights.data(), static_cast<int64_t>(count), mass));
        // The kept ones are the first in order, reach the mass, and would not without the last.
        CHECK(by_mass == std::set<int32_t>(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(by_mass.size())));
        double reached = 0;
        for (const int32_t id : by_mass) reached += weights[static_cast<size_t>(id)];
        const double last = weights[static_cast<size_t>(order[by_mass.size() - 1])];
        CHECK(reached >= mass - 1e-9 * total);
        CHECK(by_mass.size() == 1 || reached - last <= mass + 1e-9 * total);
    }
}

/// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
void test_philox() {
    const auto equals = [](const PhiloxBlock& block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
        return block.words[0] == a && block.words[1] == b && block.words[2] == c && block.words[3] == d;
    };
    CHECK(equals(philox(0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
    const uint64_t ones = ~uint64_t{0};
    CHECK(equals(philox(ones, ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
    CHECK(equals(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e), 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
    double sum = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
        const double u = uniform(7, i);
        CHECK(u >= 0 && u < 1);
        sum += u;
    }
    CHECK(std::abs(sum / 10000 - 0.5) < 0.01);
}

/// What a draw must be: filters by sorting, then the inverse of the cumulative distribution in order of ids.
int32_t expected_draw(const Floats& logits, const RowSampling& s, double* closeness) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    Floats weights;
    for (const float logit : logits) {
        const float x = (logit - largest) * (1.0f / s.temperature);
        weights.push_back(x < -87.33f ? 0.0f : static_cast<float>(std::exp(static_cast<double>(x))));
    }
    std::vector<int32_t> kept;
    for (const int32_t id : best_first(weights)) {
        if (weights[static_cast<size_t>(id)] > 0 && weights[static_cast<size_t>(id)] >= s.min_p) kept.push_back(id);
    }
    if (s.top_k > 0 && static_cast<size_t>(s.top_k) < kept.size()) kept.resize(static_cast<size_t>(s.top_k));
    const auto mass_of = [&](const std::vector<int32_t>& ids) {
        double mass = 0;
        for (const int32_t id : ids) mass += weights[static_cast<size_t>(id)];
        return mass;
    };
    if (s.top_p < 1.0f) {
        const double target = mass_of(kept) * static_cast<double>(s.top_p);
        double before = 0;
        size_t size = 0;
        while (size < kept.size() && (size == 0 || before < target)) {
            *closeness = std::min(*closeness, std::abs(before - target));
            before += weights[static_cast<size_t>(kept[size++])];
        }
        *closeness = std::min(*closeness, std::abs(before - target));
        kept.resize(size);
    }
    std::sort(kept.begin(), kept.end());
    const double target = uniform(s.seed, s.index) * mass_of(kept);
    double reached = 0;
    for (const int32_t id : kept) {
        reached += weights[static_cast<size_t>(id)];
        *closeness = std::min(*closeness, std::abs(reached - target));
        if (reached > target) return id;
    }
    return kept.back();
}

void test_draws() {
    std::mt19937 generator(2);
    std::normal_distribution<float> normal;
    RowSampler sampler;
    sampler.reserve(2000);
    int compared = 0;
    const int rounds = quick() ? 300 : 3000;
    for (int round = 0; round < rounds; ++round) {
        const size_t vocab = 1 + generator() % 2000;
        Floats logits(vocab);
        const float spread = static_cast<float>(generator() % 5);
        for (float& logit : logits) logit = normal(generator) * spread;
        if (round % 3 == 0) {
            for (size_t i = 0; i < vocab / 2; ++i) logits[i] = -std::numeric_limits<float>::infinity();
        }
        const auto one_of = [&](std::initializer_list<double> values) {
            return static_cast<float>(*(values.begin() + generator() % values.size()));
        };
        RowSampling s{one_of({0.2, 0.7, 1, 3}), one_of({0.0, 0.3, 0.9, 0.999, 1, 1}), static_cast<int32_t>(one_of({0, 0, 1, 5, 40, 5000})),
                      one_of({0, 0, 0, 0.01, 0.5}), generator(), generator(), false, nullptr, nullptr};
        const float largest = *std::max_element(logits.begin(), logits.end());
        if (largest == -std::numeric_limits<float>::infinity()) continue;
        double closeness = 1e9;
        const int32_t expected = expected_draw(logits, s, &closeness);
        const Sampled sampled = sampler.sample(logits.data(), static_cast<int64_t>(vocab), largest, s, true);
        CHECK(sampled.error == RowError::none);
        // Where the draw falls on a border to within rounding, either side is right.
        if (closeness < 1e-4) continue;
        ++compared;
        CHECK(sampled.token == expected);
    }
    CHECK(compared > rounds / 2);
}

void test_state() {
    SamplerState::Spec spec;
    spec.repetition_penalty = 2.0f;
    spec.frequency_penalty = 0.5f;
    for (int32_t token = 0; token < 5000; ++token) spec.prompt_tokens.push_back(token * 7 % 3001);
    SamplerState state(spec);
    for (int i = 0; i < 3; ++i) state.append(10);
    state.append(std::numeric_limits<int32_t>::max());
    state.append(-5);
    Floats logits(3500, 1.0f);
    state.edit(logits.data(), 3500, false);
    for (size_t token = 0; token < 3500; ++token) {
        const float expected = token == 10 ? 0.5f - 1.5f : token < 3001 ? 0.5f : 1.0f;
        CHECK(logits[token] == expected);
    }
    SamplerState::Spec none;
    none.has_allowed = true;
    CHECK(SamplerState(none).edits(false) && !SamplerState(SamplerState::Spec{}).edits(true));
}

void test_logprobs() {
    std::mt19937 generator(4);
    TopTokens top;
    top.reserve(3000);
    for (const size_t vocab : {1u, 7u, 500u, 3000u}) {
        Floats logits(vocab);
        for (float& logit : logits) logit = static_cast<float>(generator() % 50) / 4;
        const std::vector<int32_t> order = best_first(logits);
        for (const size_t n : {size_t{0}, size_t{1}, size_t{20}, vocab / 9, vocab}) {
            if (n > vocab) continue;
            std::vector<int32_t> found(n);
            top.find(logits.data(), static_cast<int64_t>(vocab), static_cast<int64_t>(n), found.data());
            CHECK(std::equal(found.begin(), found.end(), order.begin()));
        }
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    test::test_cuts();
    test::test_philox();
    test::test_state();
    for (const test::Target& target : test::targets()) {
        set_isa_for_test(target.isa, target.bf16);
        test::test_draws();
        test::test_logprobs();
    }
    return test::finish("sampling_test");
}
