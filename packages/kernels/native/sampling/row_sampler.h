#pragma once
#include <cstdint>
#include <vector>

#include "../core/enumeration.h"
#include "sampler_state.h"

namespace octavo {

/// non_finite_logits: a logit is NaN or +infinity, or a hidden state is not finite. no_token_allowed: mask, allowed ids, bad words,
/// stop suppression and bias left no token.
OCTAVO_ENUMERATION(RowError, none, non_finite_logits, no_token_allowed);

struct RowSampling {
    float temperature;
    float top_p;
    int32_t top_k;
    float min_p;
    uint64_t seed;
    uint64_t index;
    bool suppress_stops;
    SamplerState* state;  // may be null
    /// Bit `id & 31` of word `id >> 5` for each token that may be sampled; may be null.
    const uint32_t* mask;
};

struct Sampled {
    int32_t token;
    RowError error;
};

/// Draws one token from a row of logits. Holds the scratch of one thread.
///
/// Ties go to the lowest id: in greedy choice, at the border of top-k (exactly k tokens stay) and at that of top-p.
/// A state records the token; on an error it is left as it was.
class RowSampler {
public:
    /// Makes room for rows of `vocab` logits, so that sampling them allocates nothing.
    void reserve(int64_t vocab);

    /// `logits` are overwritten unless `keep`. `largest` is their largest value, all being finite or -infinity.
    Sampled sample(float* logits, int64_t vocab, float largest, const RowSampling& sampling, bool keep);

private:
    int32_t draw(const float* logits, int64_t vocab, float largest, const RowSampling& sampling);
    int32_t draw_from_all(int64_t vocab, double total, double uniform) const;
    void collect(int64_t vocab, double total, const RowSampling& sampling);
    template <typename MakeCut>
    void keep_largest(MakeCut&& make_cut);
    double candidate_mass() const;

    std::vector<float> edited_;
    std::vector<float> weights_;
    std::vector<double> run_sums_;
    /// Tokens still in play in ascending order, and their weights.
    std::vector<int32_t> candidates_;
    std::vector<float> candidate_weights_;
    int64_t num_candidates_ = 0;
};

}  // namespace octavo
