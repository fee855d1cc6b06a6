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
    /// Layers may differ in heads alone. Throws std::bad_alloc.
    explicit KvCache(std::vector<KvShape> shapes, StateCacheShape states = {}) : shapes_(std::move(shapes)), states_(std::move(states)) {
        layers_.reserve(shapes_.size());
        for (const KvShape& shape : shapes_) {
            const size_t bytes = shape.layer_bytes();
            layers_.push_back({shape.is_latent ? AlignedMemory() : AlignedMemory(bytes, Pages::small_first),
                               AlignedMemory(bytes, Pages::small_first)});
        }
    }
    /// All layers alike.
    KvCache(const KvShape& shape, size_t num_layers) : KvCache(std::vector<KvShape>(num_layers, shape)) {}

    const KvShape& shape(int64_t layer) const { return shapes_[static_cast<size_t>(layer)]; }
    const StateCache& states() const { return states_; }
    const KvLayer& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }

private:
    std::vector<KvShape> shapes_;
    StateCache states_;
    std::vector<KvLayer> layers_;
};

}  // namespace octavo
