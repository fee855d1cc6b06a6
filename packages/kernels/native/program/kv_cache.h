#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../ops/attention/attention.h"
#include "../ops/recurrent/state_cache.h"

namespace octavo {

/// Paged keys and values of all layers, and slots of recurrent state. Reserved at once, committed page by page as blocks are first written.
class KvCache {
public:
    /// Throws std::bad_alloc.
    KvCache(const KvShape& shape, int64_t num_layers, StateCacheShape states = {}) : shape_(shape), states_(std::move(states)) {
        const size_t bytes = shape.layer_bytes();
        layers_.reserve(static_cast<size_t>(num_layers));
        for (int64_t i = 0; i < num_layers; i++) {
            layers_.push_back({AlignedMemory(bytes, Pages::small_first), AlignedMemory(bytes, Pages::small_first)});
        }
    }

    const KvShape& shape() const { return shape_; }
    const StateCache& states() const { return states_; }
    const KvLayer& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }

private:
    KvShape shape_;
    StateCache states_;
    std::vector<KvLayer> layers_;
};

}  // namespace octavo
