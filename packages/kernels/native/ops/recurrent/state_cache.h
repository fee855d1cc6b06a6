#pragma once
#include <cstdint>
#include <vector>

#include "../../core/aligned_memory.h"
#include "../attention/attention_plan.h"

namespace octavo {

struct StateCacheShape {
    int64_t num_slots = 0;
    /// Tokens that may be computed behind a slot's own and taken back.
    int64_t max_draft = 0;
    /// Floats of a slot, for each recurrent op of the program.
    std::vector<int64_t> widths;
};

/// Slots of recurrent state. A slot holds what all recurrent ops keep of one sequence after so many of its tokens, and the inputs of
/// up to `max_draft` tokens behind them, so that a draft may be accepted in part. Pages are committed when first written.
class StateCache {
public:
    StateCache() = default;
    /// Throws std::bad_alloc.
    explicit StateCache(StateCacheShape shape) : shape_(std::move(shape)) {
        for (int64_t& width : shape_.widths) {
            width = (width + 15) / 16 * 16;
            states_.emplace_back(static_cast<size_t>(shape_.num_slots * width) * sizeof(float), Pages::small_first);
        }
    }

    int64_t max_draft() const { return shape_.max_draft; }
    float* slot(int64_t state, int64_t index) const {
        return reinterpret_cast<float*>(states_[static_cast<size_t>(state)].data()) + index * shape_.widths[static_cast<size_t>(state)];
    }

private:
    StateCacheShape shape_;
    std::vector<AlignedMemory> states_;
};

/// The slots of a step's sequences; see StepStates in step.ts. Empty when the program keeps no state.
struct StateLayout {
    std::vector<int32_t> slots;
    std::vector<int32_t> sources;
    std::vector<int32_t> starts;
    std::vector<int32_t> ends;
    std::vector<int32_t> snapshot_starts;
    std::vector<int32_t> snapshot_positions;
    std::vector<int32_t> snapshot_slots;
};

}  // namespace octavo
