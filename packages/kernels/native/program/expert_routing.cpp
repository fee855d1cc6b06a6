#include "expert_routing.h"

#include <algorithm>
#include <cmath>

#include "../ops/rows.h"

namespace octavo {

void ExpertRouting::choose(Rows scores, int64_t num_rows, int64_t num_experts, int64_t top_k, bool among_chosen, ThreadPool& pool) {
    top_k_ = top_k;
    const size_t num_choices = static_cast<size_t>(num_rows * top_k);
    experts_.resize(num_choices);
    weights_.resize(num_choices);
    choices_.resize(num_choices);
    rows_.resize(num_choices);
    for_rows(pool, num_rows, num_experts, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            choose_row(scores.row(row), num_experts, among_chosen, experts_.data() + row * top_k, weights_.data() + row * top_k);
        }
    });

    starts_.assign(static_cast<size_t>(num_experts) + 1, 0);
    for (const int32_t expert : experts_) ++starts_[static_cast<size_t>(expert) + 1];
    for (size_t expert = 0; expert < static_cast<size_t>(num_experts); ++expert) starts_[expert + 1] += starts_[expert];
    next_.assign(starts_.begin(), starts_.end() - 1);
    for (size_t i = 0; i < num_choices; ++i) {
        const int32_t choice = next_[static_cast<size_t>(experts_[i])]++;
        choices_[i] = choice;
        rows_[static_cast<size_t>(choice)] = static_cast<int32_t>(static_cast<int64_t>(i) / top_k);
    }
}

void ExpertRouting::choose_row(const float* scores, int64_t num_experts, bool among_chosen, int32_t* experts, float* weights) const {
    // The best so far, best first; `weights` holds their scores meanwhile. NaN ranks last, and makes the row's weights NaN.
    int64_t num_chosen = 0;
    for (int64_t expert = 0; expert < num_experts; ++expert) {
        const float score = std::isnan(scores[expert]) ? -INFINITY : scores[expert];
        if (num_chosen == top_k_ && !(score > weights[top_k_ - 1])) continue;
        int64_t at = num_chosen < top_k_ ? num_chosen++ : top_k_ - 1;
        for (; at > 0 && score > weights[at - 1]; --at) {
            weights[at] = weights[at - 1];
            experts[at] = experts[at - 1];
        }
        weights[at] = score;
        experts[at] = static_cast<int32_t>(expert);
    }
    const float largest = weights[0];
    std::sort(experts, experts + top_k_);
    float total = 0.0f;
    for (int64_t k = 0; k < top_k_; ++k) {
        weights[k] = std::exp(scores[experts[k]] - largest);
        total += weights[k];
    }
    if (!among_chosen) {
        total = 0.0f;
        for (int64_t expert = 0; expert < num_experts; ++expert) total += std::exp(scores[expert] - largest);
    }
    for (int64_t k = 0; k < top_k_; ++k) weights[k] /= total;
}

}  // namespace octavo
