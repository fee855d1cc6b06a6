#include "expert_routing.h"

#include <algorithm>
#include <cmath>

#include "../ops/rows.h"

namespace octavo {

namespace {

/// Rows of one rule, one after the other.
class RowRouter {
public:
    RowRouter(const RoutingRule& rule, int64_t num_experts, const float* bias)
        : rule_(rule), num_experts_(num_experts), bias_(bias), is_plain_(!rule.is_sigmoid && bias == nullptr && rule.groups == 1) {
        if (is_plain_) return;
        probabilities_.resize(static_cast<size_t>(num_experts));
        ranks_.resize(static_cast<size_t>(num_experts));
        groups_.resize(static_cast<size_t>(rule.groups));
    }

    void choose(const float* scores, int32_t* experts, float* weights) {
        if (!is_plain_) rank(scores);
        choose_best(is_plain_ ? scores : ranks_.data(), experts, weights);
        std::sort(experts, experts + rule_.top_k);
        if (is_plain_) {
            softmax(scores, weights[0], experts, weights);
        } else {
            float total = 0.0f;
            for (int64_t k = 0; k < rule_.top_k; ++k) {
                weights[k] = probabilities_[static_cast<size_t>(experts[k])];
                total += weights[k];
            }
            // A row whose probabilities have all vanished gets no NaN.
            for (int64_t k = 0; rule_.among_chosen && k < rule_.top_k; ++k) weights[k] /= total + 1e-20f;
        }
        if (rule_.scale == 1.0f) return;
        for (int64_t k = 0; k < rule_.top_k; ++k) weights[k] *= rule_.scale;
    }

private:
    /// The best, best first; `best` holds their scores. NaN ranks last.
    void choose_best(const float* scores, int32_t* experts, float* best) const {
        int64_t num_chosen = 0;
        for (int64_t expert = 0; expert < num_experts_; ++expert) {
            const float score = std::isnan(scores[expert]) ? -INFINITY : scores[expert];
            if (num_chosen == rule_.top_k && !(score > best[rule_.top_k - 1])) continue;
            int64_t at = num_chosen < rule_.top_k ? num_chosen++ : rule_.top_k - 1;
            for (; at > 0 && score > best[at - 1]; --at) {
                best[at] = best[at - 1];
                experts[at] = experts[at - 1];
            }
            best[at] = score;
            experts[at] = static_cast<int32_t>(expert);
        }
    }

    /// NaN among the scores makes the row's weights NaN.
    void softmax(const float* scores, float largest, const int32_t* experts, float* weights) const {
        float total = 0.0f;
        for (int64_t k = 0; k < rule_.top_k; ++k) {
            weights[k] = std::exp(scores[experts[k]] - largest);
            total += weights[k];
        }
        if (!rule_.among_chosen) {
            total = 0.0f;
            for (int64_t expert = 0; expert < num_experts_; ++expert) total += std::exp(scores[expert] - largest);
        }
        for (int64_t k = 0; k < rule_.top_k; ++k) weights[k] /= total;
    }

    void rank(const float* scores) {
        const size_t count = static_cast<size_t>(num_experts_);
        if (rule_.is_sigmoid) {
            for (size_t i = 0; i < count; ++i) probabilities_[i] = 1.0f / (1.0f + std::exp(-scores[i]));
        } else {
            const float largest = *std::max_element(scores, scores + num_experts_);
            float total = 0.0f;
            for (size_t i = 0; i < count; ++i) {
                probabilities_[i] = std::exp(scores[i] - largest);
                total += probabilities_[i];
            }
            for (float& probability : probabilities_) probability /= total;
        }
        for (size_t i = 0; i < count; ++i) ranks_[i] = probabilities_[i] + (bias_ == nullptr ? 0.0f : bias_[i]);
        if (rule_.groups > 1) drop_groups();
    }

    /// Experts of groups that are not among the best cannot be chosen.
    void drop_groups() {
        const int64_t size = num_experts_ / rule_.groups;
        for (int64_t group = 0; group < rule_.groups; ++group) {
            float first = -INFINITY;
            float second = -INFINITY;
            for (int64_t i = group * size; i < (group + 1) * size; ++i) {
                const float rank = ranks_[static_cast<size_t>(i)];
                if (rank > first) {
                    second = first;
                    first = rank;
                } else if (rank > second) {
                    second = rank;
                }
            }
            groups_[static_cast<size_t>(group)] = rule_.groups_by_two && size > 1 ? first + second : first;
        }
        for (int64_t group = 0; group < rule_.groups; ++group) {
            const float own = groups_[static_cast<size_t>(group)];
            int64_t better = 0;
            for (int64_t other = 0; other < rule_.groups; ++other) {
                const float theirs = groups_[static_cast<size_t>(other)];
                if (theirs > own || (theirs == own && other < group)) ++better;
            }
            if (better < rule_.top_groups) continue;
            std::fill(ranks_.begin() + group * size, ranks_.begin() + (group + 1) * size, -INFINITY);
        }
    }

    const RoutingRule& rule_;
    int64_t num_experts_;
    const float* bias_;
    /// Scores rank as their softmax does.
    bool is_plain_;
    std::vector<float> probabilities_;
    std::vector<float> ranks_;
    std::vector<float> groups_;
};

}  // namespace

void ExpertRouting::choose(Rows scores, int64_t num_rows, int64_t num_experts, const RoutingRule& rule, const float* bias,
                           const float* scales, ThreadPool& pool) {
    const int64_t top_k = rule.top_k;
    top_k_ = top_k;
    const size_t num_choices = static_cast<size_t>(num_rows * top_k);
    experts_.resize(num_choices);
    weights_.resize(num_choices);
    choices_.resize(num_choices);
    rows_.resize(num_choices);
    for_rows(pool, num_rows, num_experts, [&](int64_t begin, int64_t end) {
        RowRouter router(rule, num_experts, bias);
        for (int64_t row = begin; row < end; ++row) {
            const int32_t* experts = experts_.data() + row * top_k;
            float* weights = weights_.data() + row * top_k;
            router.choose(scores.row(row), experts_.data() + row * top_k, weights);
            for (int64_t k = 0; scales != nullptr && k < top_k; ++k) weights[k] *= scales[experts[k]];
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

}  // namespace octavo
