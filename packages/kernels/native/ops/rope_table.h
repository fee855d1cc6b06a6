#pragma once
#include <cstdint>
#include <vector>

#include "../core/thread_pool.h"
#include "kernels.h"

namespace octavo {

/// Of an image in a text: time, height, width.
constexpr int64_t kRopeAxes = 3;

struct RopeSpec {
    std::vector<float> inverse_frequencies;
    float attention_factor;
    RopeLayout layout;
    /// Multiplies further by 1 + growth_beta * ln(1 + floor((position + growth_offset) / growth_every)); 0 means by 1.
    float growth_beta = 0.0f;
    int64_t growth_every = 0;
    int64_t growth_offset = 0;
    /// By pair, along which of the step's axes it rotates; empty where all go by the position.
    std::vector<uint8_t> axes;

    bool operator==(const RopeSpec& other) const {
        return layout == other.layout && growth_beta == other.growth_beta && growth_every == other.growth_every &&
               growth_offset == other.growth_offset && axes == other.axes && attention_factor == other.attention_factor && inverse_frequencies == other.inverse_frequencies;
    }
};

/// cos and sin of the step's tokens for one RopeSpec, computed once a step for all layers.
/// The angle is the f32 product position * frequency, as in transformers; its cosine and sine are rounded from double.
class RopeTable {
public:
    explicit RopeTable(RopeSpec spec) : spec_(std::move(spec)) {}

    /// `axes`: kRopeAxes of each token, or null where each is the token's position.
    void fill(const int32_t* positions, const int32_t* axes, int64_t num_tokens, ThreadPool& pool);

    const RopeSpec& spec() const { return spec_; }
    int64_t pairs() const { return static_cast<int64_t>(spec_.inverse_frequencies.size()); }
    const float* cos(int64_t token) const { return cos_.data() + token * pairs(); }
    const float* sin(int64_t token) const { return sin_.data() + token * pairs(); }

private:
    RopeSpec spec_;
    std::vector<float> cos_;
    std::vector<float> sin_;
};

}  // namespace octavo
