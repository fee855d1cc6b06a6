#include "row_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../ops/kernels.h"
#include "cut.h"
#include "philox.h"

namespace octavo {

namespace {

/// Below this vLLM takes a temperature for zero.
constexpr float coldest = 1e-5f;
/// Weights (the largest is 1) from which candidates are collected at first; usually that is all top-k and top-p need.
constexpr float first_threshold = 1e-4f;

void keep_masked(float* logits, int64_t vocab, const uint32_t* mask) {
    constexpr float masked = -std::numeric_limits<float>::infinity();
    for (int64_t begin = 0; begin < vocab; begin += 32) {
        const uint32_t word = mask[begin / 32];
        if (word == ~0u) continue;
        const int64_t end = std::min<int64_t>(begin + 32, vocab);
        if (word == 0) {
            std::fill(logits + begin, logits + end, masked);
            continue;
        }
        for (int64_t i = begin; i < end; i++) logits[i] = (word >> (i - begin) & 1u) != 0 ? logits[i] : masked;
    }
}

}  // namespace

void RowSampler::reserve(int64_t vocab) {
    const size_t size = static_cast<size_t>(vocab);
    if (weights_.size() >= size) return;
    edited_.resize(size);
    run_sums_.resize(size / logit_run + 1);
    candidates_.resize(size);
    candidate_weights_.resize(size);
    weights_.resize(size);
}

Sampled RowSampler::sample(float* logits, int64_t vocab, float largest, const RowSampling& sampling, bool keep) {
    const OpKernels& kernels = op_kernels();
    float* row = logits;
    const bool edits = sampling.state != nullptr && sampling.state->edits(sampling.suppress_stops);
    if (edits || sampling.mask != nullptr) {
        if (keep) {
            std::copy(logits, logits + vocab, edited_.data());
            row = edited_.data();
        }
        if (sampling.mask != nullptr) keep_masked(row, vocab, sampling.mask);
        if (edits) sampling.state->edit(row, vocab, sampling.suppress_stops);
        bool bad = false;
        largest = kernels.largest(row, vocab, &bad);
        if (bad) return {-1, RowError::non_finite_logits};
    }
    if (largest == -std::numeric_limits<float>::infinity()) return {-1, RowError::no_token_allowed};
    const int32_t token = sampling.temperature < coldest ? static_cast<int32_t>(kernels.find(row, vocab, largest))
                                                         : draw(row, vocab, largest, sampling);
    if (sampling.state != nullptr) sampling.state->append(token);
    return {token, RowError::none};
}

int32_t RowSampler::draw(const float* logits, int64_t vocab, float largest, const RowSampling& sampling) {
    // The largest weight is exactly 1, so min-p is a bound on the weight itself.
    const double total = op_kernels().weigh(logits, vocab, largest, 1.0f / sampling.temperature,
                                            std::min(sampling.min_p, 1.0f), weights_.data(), run_sums_.data());
    const double u = uniform(sampling.seed, sampling.index);
    const bool has_top_k = sampling.top_k > 0 && sampling.top_k < vocab;
    if (!has_top_k && sampling.top_p >= 1.0f) return draw_from_all(vocab, total, u);

    collect(vocab, total, sampling);
    if (has_top_k && sampling.top_k < num_candidates_) {
        keep_largest([&](const float* weights, int64_t count) { return cut_at_count(weights, count, sampling.top_k); });
    }
    if (sampling.top_p < 1.0f) {
        const double whole = has_top_k ? candidate_mass() : total;
        const double mass = static_cast<double>(sampling.top_p) * whole;
        keep_largest([&](const float* weights, int64_t count) { return cut_at_mass(weights, count, mass); });
    }
    const double target = u * candidate_mass();
    double reached = 0.0;
    for (int64_t i = 0; i < num_candidates_; i++) {
        reached += static_cast<double>(candidate_weights_[static_cast<size_t>(i)]);
        if (reached > target) return candidates_[static_cast<size_t>(i)];
    }
    return candidates_[static_cast<size_t>(num_candidates_ - 1)];
}

/// Inverse of the cumulative distribution in order of ids: to the run, then within it.
int32_t RowSampler::draw_from_all(int64_t vocab, double total, double u) const {
    const double target = u * total;
    const int64_t num_runs = (vocab + logit_run - 1) / logit_run;
    // When rounding puts the target past the end, the last token with any weight stands.
    double reached = -std::numeric_limits<double>::infinity();
    double before = 0.0;
    int64_t chosen = 0;
    for (int64_t run = 0; run < num_runs; run++) {
        const double sum = run_sums_[static_cast<size_t>(run)];
        if (sum <= 0.0) continue;
        chosen = run;
        if (before + sum > target) {
            reached = before;
            break;
        }
        before += sum;
    }
    const int64_t begin = chosen * logit_run;
    const int64_t end = std::min(begin + logit_run, vocab);
    int64_t token = begin;
    for (int64_t i = begin; i < end; i++) {
        const float weight = weights_[static_cast<size_t>(i)];
        if (weight <= 0.0f) continue;
        token = i;
        reached += static_cast<double>(weight);
        if (reached > target) break;
    }
    return static_cast<int32_t>(token);
}

/// Every token that can survive top-k and top-p, and perhaps more.
void RowSampler::collect(int64_t vocab, double total, const RowSampling& sampling) {
    const auto take = [&](float threshold) {
        num_candidates_ =
            op_kernels().collect(weights_.data(), vocab, threshold, candidates_.data(), candidate_weights_.data());
    };
    take(first_threshold);
    const bool enough = sampling.top_k > 0 ? num_candidates_ >= sampling.top_k
                                           : candidate_mass() >= static_cast<double>(sampling.top_p) * total;
    if (!enough) take(std::numeric_limits<float>::min());
}

template <typename MakeCut>
void RowSampler::keep_largest(MakeCut&& make_cut) {
    const Cut cut = make_cut(candidate_weights_.data(), num_candidates_);
    int64_t ties = cut.ties;
    int64_t kept = 0;
    for (int64_t i = 0; i < num_candidates_; i++) {
        const float weight = candidate_weights_[static_cast<size_t>(i)];
        if (weight < cut.weight || (weight == cut.weight && ties-- <= 0)) continue;
        candidates_[static_cast<size_t>(kept)] = candidates_[static_cast<size_t>(i)];
        candidate_weights_[static_cast<size_t>(kept)] = weight;
        kept++;
    }
    num_candidates_ = kept;
}

double RowSampler::candidate_mass() const {
    double mass = 0.0;
    for (int64_t i = 0; i < num_candidates_; i++) mass += static_cast<double>(candidate_weights_[static_cast<size_t>(i)]);
    return mass;
}

}  // namespace octavo
