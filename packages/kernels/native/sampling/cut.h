#pragma once
#include <cstdint>

namespace octavo {

/// The border of a set of largest weights: those above `weight`, and the first `ties` equal to it in array order.
struct Cut {
    float weight;
    int64_t ties;
};

/// Border of the `keep` largest of `count` weights, 1 <= keep <= count.
Cut cut_at_count(const float* weights, int64_t count, int64_t keep);

/// Border of the fewest largest weights whose sum reaches `mass`; at least one.
Cut cut_at_mass(const float* weights, int64_t count, double mass);

}  // namespace octavo
