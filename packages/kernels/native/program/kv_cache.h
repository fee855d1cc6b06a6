#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../ops/attention/attention.h"

namespace octavo {

/// Paged keys and values of all layers. Reserved at once, committed page by page as blocks are first written.
class KvCache {
public:
    /// Throws std::bad_alloc.
    KvCache(const KvShape& shape, int64_t num_layers) : shape_(shape) {
        const size_t bytes = shape.layer_bytes();
        layers_.reserve(static_cast<size_t>(num_layers));
        for (int64_t i = 0; i < num_layers; i++) {
            layers_.push_back({AlignedMemory(bytes, Pages::small_first), AlignedMemory(bytes, Pages::small_first)});
        }
    }

    const KvShape& shape() const { return shape_; }
    const KvLayer& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }

private:
    KvShape shape_;
    std::vector<KvLayer> layers_;
};

}  // namespace octavo
