#include "rope_table.h"

#include <cmath>

#include "rows.h"

namespace octavo {

void RopeTable::fill(const int32_t* positions, const int32_t* axes, int64_t num_tokens, ThreadPool& pool) {
    const size_t needed = static_cast<size_t>(num_tokens * pairs());
    if (cos_.size() < needed) {
        cos_.resize(needed);
        sin_.resize(needed);
    }
    const int64_t cost_per_token = pairs() * 32;
    for_rows(pool, num_tokens, cost_per_token, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; t++) {
            float factor = spec_.attention_factor;
            if (spec_.growth_beta != 0.0f) {
                const auto times = static_cast<float>((positions[t] + spec_.growth_offset) / spec_.growth_every);
                factor *= 1.0f + spec_.growth_beta * std::log(1.0f + times);
            }
            for (int64_t i = 0; i < pairs(); i++) {
                const bool is_axis = axes != nullptr && !spec_.axes.empty();
                const int32_t position = is_axis ? axes[t * kRopeAxes + spec_.axes[static_cast<size_t>(i)]] : positions[t];
                const float angle = static_cast<float>(position) * spec_.inverse_frequencies[static_cast<size_t>(i)];
                const size_t at = static_cast<size_t>(t * pairs() + i);
                cos_[at] = static_cast<float>(std::cos(static_cast<double>(angle))) * factor;
                sin_[at] = static_cast<float>(std::sin(static_cast<double>(angle))) * factor;
            }
        }
    });
}

}  // namespace octavo
