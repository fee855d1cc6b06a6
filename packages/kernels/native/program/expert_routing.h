#pragma once
#include <cstdint>
#include <vector>

#include "../core/thread_pool.h"
#include "../ops/attention/attention.h"
#include "routing_rule.h"

namespace octavo {

/// Which experts the rows of a step go to, and those choices grouped by expert. A row's choices and their weights depend on its
/// scores alone. A choice is a (row, expert) pair; choices are numbered expert by expert, and by row within an expert.
class ExpertRouting {
public:
    /// Chooses experts for each row by `num_experts` scores. `bias` and `scales`, one an expert, may be
    /// null; `scales` multiply the weights.
    void choose(Rows scores, int64_t num_rows, int64_t num_experts, const RoutingRule& rule, const float* bias, const float* scales,
                ThreadPool& pool);

    /// Choices of an expert: [first(expert), first(expert + 1)).
    int64_t first(int64_t expert) const { return starts_[static_cast<size_t>(expert)]; }
    int64_t count(int64_t expert) const { return first(expert + 1) - first(expert); }
    int64_t row_of(int64_t choice) const { return rows_[static_cast<size_t>(choice)]; }

    int64_t per_row() const { return top_k_; }
    /// The row's k-th choice, in ascending order of expert, and its weight.
    int64_t choice(int64_t row, int64_t k) const { return choices_[static_cast<size_t>(row * top_k_ + k)]; }
    float weight(int64_t row, int64_t k) const { return weights_[static_cast<size_t>(row * top_k_ + k)]; }

private:
    int64_t top_k_ = 0;
    /// [row][k]
    std::vector<int32_t> experts_;
    std::vector<float> weights_;
    std::vector<int32_t> choices_;
    /// [choice]
    std::vector<int32_t> rows_;
    /// [expert + 1], and the next free choice of each while they are handed out.
    std::vector<int32_t> starts_;
    std::vector<int32_t> next_;
};

}  // namespace octavo
