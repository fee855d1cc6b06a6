#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace octavo {

/// What a sequence's sampling remembers from step to step, and how it edits a row of logits.
class SamplerState {
public:
    struct Spec {
        std::vector<int32_t> prompt_tokens;
        std::vector<int32_t> output_tokens;
        std::vector<std::pair<int32_t, float>> logit_bias;
        /// Sorted, unique. Meaningful when `has_allowed`: an empty list then allows nothing.
        std::vector<int32_t> allowed_tokens;
        bool has_allowed = false;
        std::vector<std::vector<int32_t>> bad_words;
        std::vector<int32_t> stop_tokens;
        float repetition_penalty = 1.0f;
        float frequency_penalty = 0.0f;
        float presence_penalty = 0.0f;
    };

    explicit SamplerState(Spec spec);

    /// Records a generated token.
    void append(int32_t token);

    bool edits(bool suppress_stops) const;

    /// Bad words, stop suppression, bias and penalties, in place, after the allowed ids.
    void edit(float* logits, int64_t vocab, bool suppress_stops) const;

private:
    struct Count {
        int32_t token;
        int32_t in_output;
    };

    bool has_penalties() const;
    Count& count_of(int32_t token);
    void grow();
    void keep_allowed(float* logits, int64_t vocab) const;
    void ban_bad_words(float* logits, int64_t vocab) const;
    void penalise(float* logits, int64_t vocab) const;

    Spec spec_;
    /// Distinct tokens of prompt and output in order of appearance, found through an open-addressed table of indices.
    std::vector<Count> counts_;
    std::vector<int32_t> table_;
    /// The last generated tokens, newest last: as many as the longest bad word's prefix.
    std::vector<int32_t> recent_;
    size_t recent_capacity_ = 0;
};

}  // namespace octavo
