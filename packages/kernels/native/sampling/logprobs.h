#pragma once
#include <cstdint>
#include <vector>

namespace octavo {

/// Log-probabilities of a row of raw logits: log-softmax with the sum kept in double.
struct LogSoftmax {
    double largest;
    double log_sum;

    float of(float logit) const { return static_cast<float>((static_cast<double>(logit) - largest) - log_sum); }
};

LogSoftmax log_softmax(const float* logits, int64_t vocab, float largest);

/// 1 for the most likely token; tokens that tie share the best rank.
int32_t rank_of(const float* logits, int64_t vocab, int32_t token);

/// The `n` largest, best first, lower ids first among equals. Holds the scratch of one thread.
class TopTokens {
public:
    /// Makes room for rows of `vocab` logits.
    void reserve(int64_t vocab);
    void find(const float* logits, int64_t vocab, int64_t n, int32_t* tokens);

private:
    std::vector<int32_t> order_;
};

}  // namespace octavo
