// Row, logit and attention kernels of every instruction set of this machine against plain double arithmetic.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../core/half.h"
#include "../core/isa.h"
#include "../core/float_to_f16.h"
#include "../ops/kernels.h"
#include "../ops/rope_table.h"
#include "support/check.h"
#include "support/op_cases.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

using Floats = std::vector<float>;

Floats noise(size_t count, uint32_t seed, float scale = 1.0f) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0f, scale);
    Floats values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

bool close(double actual, double expected, double tolerance) {
    return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

void test_half_conversions() {
    for (uint32_t half = 0; half < 0x10000u; ++half) {
        const float value = f16_to_f32(static_cast<uint16_t>(half));
        if (value != value) continue;
        CHECK(f32_to_f16(value) == half);
    }
    std::mt19937 generator(3);
    for (int i = 0; i < 20000; ++i) {
        const float value = float_from_bits(static_cast<uint32_t>(generator()));
        if (!(std::abs(value) < 70000.0f)) continue;
        // The nearest of the two neighbours, the even one when it is a tie.
        const uint16_t half = f32_to_f16(value);
        const double gap = std::abs(static_cast<double>(f16_to_f32(half)) - static_cast<double>(value));
        for (const int step : {-1, 1}) {
            const uint16_t neighbour = static_cast<uint16_t>(half + step);
            if (((neighbour ^ half) & 0x8000u) != 0 || (half & 0x7c00u) == 0x7c00u || (neighbour & 0x7c00u) == 0x7c00u) continue;
            const double other = std::abs(static_cast<double>(f16_to_f32(neighbour)) - static_cast<double>(value));
            CHECK(gap < other || (gap == other && (half & 1u) == 0));
        }
    }
    CHECK(f32_to_f16(65520.0f) == 0x7c00u && f32_to_f16(65519.9f) == 0x7bffu && f32_to_f16(-1e9f) == 0xfc00u);
    CHECK((f32_to_f16(std::nanf("")) & 0x7fffu) > 0x7c00u);
}

void test_row_kernels(const OpKernels& kernels) {
    for (const auto& [width, name] : kRowWidths) {
        const size_t count = static_cast<size_t>(width);
        const Floats x = noise(count, 1);
        const Floats weight = noise(count, 2);
        // One value past the end shows writes outside the row.
        Floats out(count + 1, 42.0f);
        Floats residual = noise(count, 3);
        residual.push_back(42.0f);
        double squares = 0;
        Floats sums(count);
        for (size_t i = 0; i < count; ++i) {
            sums[i] = residual[i] + x[i];
            squares += static_cast<double>(sums[i]) * sums[i];
        }
        kernels.rms_norm(x.data(), weight.data(), 0.5f, 1e-5f, width, width, 0, residual.data(), out.data());
        const double factor = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        for (size_t i = 0; i < count; ++i) {
            CHECK(residual[i] == sums[i]);
            CHECK(close(out[i], sums[i] * factor * (weight[i] + 0.5), 1e-5));
        }
        CHECK(out[count] == 42.0f && residual[count] == 42.0f);

        kernels.add(x.data(), out.data(), width);
        kernels.scale(out.data(), 0.5f, width);
        CHECK(close(out[0], (sums[0] * factor * (weight[0] + 0.5) + x[0]) * 0.5, 1e-5) && out[count] == 42.0f);

        Floats capped(x);
        capped.push_back(42.0f);
        kernels.soft_cap(capped.data(), 2.0f, width);
        for (size_t i = 0; i < count; ++i) CHECK(close(capped[i], 2.0 * std::tanh(x[i] / 2.0), 1e-6));
        CHECK(capped[count] == 42.0f);
    }
    const float nan = std::nanf("");
    const Floats extremes{-1e30f, -200.0f, -88.0f, -20.0f, -1.0f, -1e-6f, 0.0f, 1e-6f, 1.0f, 20.0f, 88.0f, 200.0f, nan};
    const Floats ones(extremes.size(), 1.0f);
    Floats out(extremes.size());
    for (const Activation activation : {Activation::silu, Activation::gelu, Activation::gelu_tanh}) {
        kernels.gated_activation(activation, extremes.data(), ones.data(), out.data(), static_cast<int64_t>(out.size()));
        for (size_t i = 0; i < extremes.size(); ++i) {
            const double x = extremes[i];
            const double expected = activation == Activation::silu   ? x / (1 + std::exp(-x))
                                    : activation == Activation::gelu ? x * 0.5 * std::erfc(-x / std::sqrt(2.0))
                                                                     : 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
            if (std::isnan(x)) {
                CHECK(std::isnan(out[i]));
            } else if (std::abs(x) < 1e20) {
                CHECK(std::abs(out[i] - expected) <= 1e-6 * std::max(1.0, std::abs(x)));
            }
        }
    }
}

void test_rope(const OpKernels& kernels, ThreadPool& pool) {
    for (const RopeLayout layout : {RopeLayout::neox, RopeLayout::interleaved}) {
        RopeTable table({{1.0f, 0.25f, 0.01f, 0.001f, 0.5f}, 1.25f, layout});
        const std::vector<int32_t> positions{0, 3, 100000};
        table.fill(positions.data(), nullptr, 3, pool);
        for (int64_t token = 0; token < 3; ++token) {
            const Floats x = noise(32, 5);
            Floats y(x);
            kernels.rope(y.data(), 2, 16, table.cos(token), table.sin(token), table.pairs(), layout);
            for (size_t head = 0; head < 2; ++head) {
                for (size_t pair = 0; pair < 5; ++pair) {
                    const size_t a = head * 16 + (layout == RopeLayout::neox ? pair : 2 * pair);
                    const size_t b = layout == RopeLayout::neox ? a + 5 : a + 1;
                    const double angle = static_cast<float>(positions[static_cast<size_t>(token)]) * table.spec().inverse_frequencies[pair];
                    CHECK(close(y[a], (x[a] * std::cos(angle) - x[b] * std::sin(angle)) * 1.25, 1e-6));
                    CHECK(close(y[b], (x[b] * std::cos(angle) + x[a] * std::sin(angle)) * 1.25, 1e-6));
                }
                for (size_t i = 10; i < 16; ++i) CHECK(y[head * 16 + i] == x[head * 16 + i]);
            }
        }
    }
}

void test_logit_kernels(const OpKernels& kernels) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const auto& [count, name] : kLogitCounts) {
        if (quick() && name != nullptr) continue;
        const size_t size = static_cast<size_t>(count);
        Floats x = noise(size, 9, 4.0f);
        if (count > 4) x[2] = -infinity;
        bool bad = true;
        const float largest = kernels.largest(x.data(), count, &bad);
        CHECK(!bad && largest == *std::max_element(x.begin(), x.end()));
        double total = 0;
        for (const float value : x) total += std::exp(static_cast<double>(value) - largest);
        CHECK(close(kernels.sum_exponentials(x.data(), count, largest), total, 1e-6));

        Floats weights(size + 1, 42.0f);
        std::vector<double> runs(size / logit_run + 1);
        const double mass = kernels.weigh(x.data(), count, largest, 0.5f, 0.1f, weights.data(), runs.data());
        double kept = 0;
        for (size_t i = 0; i < size; ++i) {
            const double weight = std::exp((static_cast<double>(x[i]) - largest) * 0.5);
            CHECK(weights[i] == 0.0f ? weight < 0.1001 : close(weights[i], weight, 1e-6) && weight > 0.0999);
            kept += weights[i];
        }
        CHECK(close(mass, kept, 1e-6) && weights[size] == 42.0f);
        double in_runs = 0;
        for (size_t run = 0; run < (size + logit_run - 1) / logit_run; ++run) in_runs += runs[run];
        CHECK(in_runs == mass);

        int64_t greater = 0;
        for (const float value : x) greater += value > 0.5f ? 1 : 0;
        CHECK(kernels.count_greater(x.data(), count, 0.5f) == greater);
        const int64_t found = kernels.find(x.data(), count, largest);
        CHECK(found == std::max_element(x.begin(), x.end()) - x.begin());
        CHECK(kernels.find(x.data(), count, 1234.0f) == count);
        std::vector<int64_t> above;
        for (int64_t i = kernels.find_greater(x.data(), 0, count, 0.5f); i < count;
             i = kernels.find_greater(x.data(), i + 1, count, 0.5f)) {
            above.push_back(i);
        }
        CHECK(static_cast<int64_t>(above.size()) == greater);
        std::vector<int32_t> indices(size + 1, -7);
        Floats values(size + 1);
        const int64_t collected = kernels.collect(x.data(), count, 0.5f, indices.data(), values.data());
        CHECK(collected >= greater && indices[static_cast<size_t>(collected)] == -7);
        for (int64_t i = 0; i < collected; ++i) {
            const size_t at = static_cast<size_t>(i);
            CHECK(values[at] == x[static_cast<size_t>(indices[at])] && (i == 0 || indices[at] > indices[at - 1]));
        }
        for (const float poison : {std::nanf(""), infinity}) {
            Floats poisoned(x);
            poisoned[size - 1] = poison;
            kernels.largest(poisoned.data(), count, &bad);
            CHECK(bad);
        }
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    test::test_half_conversions();
    ThreadPool pool(2);
    for (const test::Target& target : test::targets()) {
        set_isa_for_test(target.isa, target.bf16);
        test::test_row_kernels(op_kernels());
        test::test_rope(op_kernels(), pool);
        test::test_logit_kernels(op_kernels());
    }
    return test::finish("ops_test");
}
