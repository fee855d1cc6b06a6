#include "cut.h"

#include <algorithm>
#include <functional>

#include "../core/half.h"

namespace octavo {

namespace {

// Non-negative floats order as their bit patterns, so three histograms over slices of the pattern find the border
// exactly in linear time: the radix selection, with sums beside counts.
struct Level {
    int shift;
    int bits;
};
constexpr Level levels[] = {{20, 12}, {10, 10}, {0, 10}};

struct Bucket {
    double mass;
    int64_t count;
};

/// Walks buckets from the largest weights down; `reaches(before, bucket)` says that the border lies in the bucket.
template <typename Reaches>
uint32_t border_pattern(const float* weights, int64_t count, Bucket& before, Reaches&& reaches) {
    static thread_local Bucket buckets[1 << 12];
    uint32_t prefix = 0;
    for (const Level& level : levels) {
        const uint32_t size = 1u << level.bits;
        std::fill(buckets, buckets + size, Bucket{0.0, 0});
        for (int64_t i = 0; i < count; i++) {
            const uint32_t pattern = float_bits(weights[i]);
            const uint32_t upper = pattern >> level.shift;
            if (level.shift != 20 && (upper >> level.bits) != prefix) continue;
            Bucket& bucket = buckets[upper & (size - 1)];
            bucket.mass += static_cast<double>(weights[i]);
            bucket.count++;
        }
        // Rounding may leave the border short of every bucket's end: it is then the last one that holds something.
        uint32_t chosen = 0;
        Bucket skipped{0.0, 0};
        Bucket until_chosen{0.0, 0};
        for (uint32_t b = size; b-- > 0;) {
            const Bucket& bucket = buckets[b];
            if (bucket.count == 0) continue;
            chosen = b;
            until_chosen = skipped;
            if (reaches({before.mass + skipped.mass, before.count + skipped.count}, bucket)) break;
            skipped.mass += bucket.mass;
            skipped.count += bucket.count;
        }
        before.mass += until_chosen.mass;
        before.count += until_chosen.count;
        prefix = prefix << level.bits | chosen;
    }
    return prefix;
}

/// So few weights are sorted in less time than it takes to clear the histograms.
constexpr int64_t few = 256;

Cut cut_few_at_count(const float* weights, int64_t count, int64_t keep) {
    float sorted[few] = {};
    std::copy(weights, weights + count, sorted);
    std::nth_element(sorted, sorted + keep - 1, sorted + count, std::greater<float>());
    const float weight = sorted[keep - 1];
    const int64_t above = std::count_if(weights, weights + count, [weight](float other) { return other > weight; });
    return {weight, keep - above};
}

Cut cut_few_at_mass(const float* weights, int64_t count, double mass) {
    float sorted[few] = {};
    std::copy(weights, weights + count, sorted);
    std::sort(sorted, sorted + count, std::greater<float>());
    int64_t last = 0;
    int64_t ties = 1;
    for (double reached = static_cast<double>(sorted[0]); reached < mass && last + 1 < count; ties++) {
        last++;
        if (sorted[last] != sorted[last - 1]) ties = 0;
        reached += static_cast<double>(sorted[last]);
    }
    return {sorted[last], ties};
}

int64_t equal_count(const float* weights, int64_t count, float weight) {
    return std::count(weights, weights + count, weight);
}

}  // namespace

Cut cut_at_count(const float* weights, int64_t count, int64_t keep) {
    if (count <= few) return cut_few_at_count(weights, count, keep);
    Bucket before{0.0, 0};
    const uint32_t pattern = border_pattern(weights, count, before, [&](const Bucket& above, const Bucket& bucket) {
        return above.count + bucket.count >= keep;
    });
    return {float_from_bits(pattern), keep - before.count};
}

Cut cut_at_mass(const float* weights, int64_t count, double mass) {
    if (count <= few) return cut_few_at_mass(weights, count, mass);
    Bucket before{0.0, 0};
    const uint32_t pattern = border_pattern(weights, count, before, [&](const Bucket& above, const Bucket& bucket) {
        return above.mass + bucket.mass >= mass;
    });
    const float weight = float_from_bits(pattern);
    const int64_t available = equal_count(weights, count, weight);
    int64_t ties = 1;
    while (ties < available && before.mass + static_cast<double>(weight) * static_cast<double>(ties) < mass) ties++;
    return {weight, ties};
}

}  // namespace octavo
