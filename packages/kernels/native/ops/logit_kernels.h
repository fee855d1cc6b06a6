#pragma once
#include "row_kernels.h"

// Passes over a row of logits.
namespace octavo {
namespace {

constexpr int64_t run_length = logit_run;

inline Lanes first_lanes_set(int64_t count) {
    return count >= Vec::width ? ~Lanes{0} : (Lanes{1} << count) - 1u;
}

float largest_of_row(const float* x, int64_t count, bool* bad) {
    const Vec infinity = splat(__builtin_inff());
    Vec best = splat(-__builtin_inff());
    Lanes wrong = 0;
    for (int64_t i = 0; i < count; i += Vec::width) {
        const int64_t left = count - i;
        const Vec a = load_up_to(x + i, left);
        wrong |= is_nan(a) | equal(a, infinity);
        best = maximum(best, left >= Vec::width ? a : select(first_lanes_set(left), a, best));
    }
    *bad = wrong != 0;
    return largest(best);
}

template <typename Weight>
double sum_in_runs(int64_t count, double* run_sums, Weight&& weight) {
    double total = 0.0;
    for (int64_t begin = 0; begin < count; begin += run_length) {
        const int64_t end = begin + run_length < count ? begin + run_length : count;
        Vec partial = zero();
        for (int64_t i = begin; i < end; i += Vec::width) {
            const int64_t left = count - i;
            const Vec w = weight(i, left);
            partial = partial + (left >= Vec::width ? w : select(first_lanes_set(left), w, zero()));
        }
        const double run_sum = static_cast<double>(sum(partial));
        if (run_sums != nullptr) run_sums[begin / run_length] = run_sum;
        total += run_sum;
    }
    return total;
}

double sum_exponentials(const float* x, int64_t count, float shift) {
    const Vec s = splat(shift);
    return sum_in_runs(count, nullptr,
                       [&](int64_t i, int64_t left) { return exponential(load_up_to(x + i, left) - s); });
}

double weigh(const float* x, int64_t count, float shift, float inverse_temperature, float floor, float* out,
             double* run_sums) {
    const Vec s = splat(shift);
    const Vec factor = splat(inverse_temperature);
    const Vec least = splat(floor);
    return sum_in_runs(count, run_sums, [&](int64_t i, int64_t left) {
        const Vec w = exponential((load_up_to(x + i, left) - s) * factor);
        const Vec kept = select(at_least(w, least), w, zero());
        store_up_to(out + i, kept, left);
        return kept;
    });
}

int64_t count_greater(const float* x, int64_t count, float threshold) {
    const Vec t = splat(threshold);
    int64_t total = 0;
    for (int64_t i = 0; i < count; i += Vec::width) {
        const int64_t left = count - i;
        total += __builtin_popcount(greater(load_up_to(x + i, left), t) & first_lanes_set(left));
    }
    return total;
}

int64_t find_greater(const float* x, int64_t begin, int64_t count, float threshold) {
    const Vec t = splat(threshold);
    for (int64_t i = begin; i < count; i += Vec::width) {
        const int64_t left = count - i;
        const Lanes hits = greater(load_up_to(x + i, left), t) & first_lanes_set(left);
        if (hits != 0) return i + __builtin_ctz(hits);
    }
    return count;
}

int64_t find(const float* x, int64_t count, float value) {
    const Vec v = splat(value);
    for (int64_t i = 0; i < count; i += Vec::width) {
        const int64_t left = count - i;
        const Lanes hits = equal(load_up_to(x + i, left), v) & first_lanes_set(left);
        if (hits != 0) return i + __builtin_ctz(hits);
    }
    return count;
}

int64_t collect(const float* x, int64_t count, float threshold, int32_t* indices, float* values) {
    const Vec t = splat(threshold);
    int64_t found = 0;
    for (int64_t i = 0; i < count; i += Vec::width) {
        const int64_t left = count - i;
        Lanes hits = at_least(load_up_to(x + i, left), t) & first_lanes_set(left);
        for (; hits != 0; hits &= hits - 1u) {
            const int64_t index = i + __builtin_ctz(hits);
            indices[found] = static_cast<int32_t>(index);
            values[found] = x[index];
            found++;
        }
    }
    return found;
}

}  // namespace
}  // namespace octavo
