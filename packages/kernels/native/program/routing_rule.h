#pragma once
#include <cstdint>

namespace octavo {

/// How a row's scores choose its experts. A score becomes a probability by the softmax over all experts, or by the logistic sigmoid. The
/// largest probabilities win, after a bias that only the choice sees; of equal ones, the lower expert.
struct RoutingRule {
    int64_t top_k = 1;
    bool is_sigmoid = false;
    /// The chosen experts' weights add up to 1, before they are scaled.
    bool among_chosen = true;
    float scale = 1.0f;
    /// Experts stand in groups of equal size, of which the best few take part: those with the largest probability, or sum of two.
    int64_t groups = 1;
    int64_t top_groups = 1;
    bool groups_by_two = false;
};

}  // namespace octavo
