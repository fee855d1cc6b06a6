#include "sampler_state.h"

#include <algorithm>
#include <limits>

namespace octavo {

namespace {

constexpr float masked = -std::numeric_limits<float>::infinity();
constexpr int32_t empty = -1;

size_t hash(int32_t token) { return static_cast<size_t>(static_cast<uint32_t>(token) * 0x9E3779B1u >> 7); }

bool within(int32_t token, int64_t vocab) { return token >= 0 && token < vocab; }

}  // namespace

SamplerState::SamplerState(Spec spec) : spec_(std::move(spec)) {
    for (const auto& word : spec_.bad_words) {
        if (!word.empty()) recent_capacity_ = std::max(recent_capacity_, word.size() - 1);
    }
    recent_.reserve(recent_capacity_);
    if (has_penalties()) {
        table_.assign(256, empty);
        for (const int32_t token : spec_.prompt_tokens) count_of(token);
    }
    for (const int32_t token : spec_.output_tokens) append(token);
    // Folded into the counts; the tokens themselves are not needed again.
    spec_.prompt_tokens = {};
    spec_.output_tokens = {};
}

bool SamplerState::has_penalties() const {
    return spec_.repetition_penalty != 1.0f || spec_.frequency_penalty != 0.0f || spec_.presence_penalty != 0.0f;
}

void SamplerState::append(int32_t token) {
    if (has_penalties()) count_of(token).in_output++;
    if (recent_capacity_ == 0) return;
    if (recent_.size() == recent_capacity_) recent_.erase(recent_.begin());
    recent_.push_back(token);
}

SamplerState::Count& SamplerState::count_of(int32_t token) {
    if (counts_.size() * 2 >= table_.size()) grow();
    const size_t mask = table_.size() - 1;
    for (size_t at = hash(token) & mask;; at = (at + 1) & mask) {
        if (table_[at] == empty) {
            table_[at] = static_cast<int32_t>(counts_.size());
            counts_.push_back({token, 0});
            return counts_.back();
        }
        Count& count = counts_[static_cast<size_t>(table_[at])];
        if (count.token == token) return count;
    }
}

void SamplerState::grow() {
    table_.assign(table_.size() * 2, empty);
    const size_t mask = table_.size() - 1;
    for (size_t i = 0; i < counts_.size(); i++) {
        size_t at = hash(counts_[i].token) & mask;
        while (table_[at] != empty) at = (at + 1) & mask;
        table_[at] = static_cast<int32_t>(i);
    }
}

bool SamplerState::edits(bool suppress_stops) const {
    return spec_.has_allowed || !spec_.bad_words.empty() || !spec_.logit_bias.empty() || has_penalties() ||
           (suppress_stops && !spec_.stop_tokens.empty());
}

void SamplerState::edit(float* logits, int64_t vocab, bool suppress_stops) const {
    if (spec_.has_allowed) keep_allowed(logits, vocab);
    ban_bad_words(logits, vocab);
    if (suppress_stops) {
        for (const int32_t token : spec_.stop_tokens) {
            if (within(token, vocab)) logits[token] = masked;
        }
    }
    for (const auto& [token, bias] : spec_.logit_bias) {
        if (within(token, vocab)) logits[token] += bias;
    }
    if (has_penalties()) penalise(logits, vocab);
}

void SamplerState::keep_allowed(float* logits, int64_t vocab) const {
    int64_t next = 0;
    for (const int32_t token : spec_.allowed_tokens) {
        if (!within(token, vocab)) continue;
        std::fill(logits + next, logits + token, masked);
        next = token + 1;
    }
    std::fill(logits + next, logits + vocab, masked);
}

void SamplerState::ban_bad_words(float* logits, int64_t vocab) const {
    for (const auto& word : spec_.bad_words) {
        if (word.empty() || word.size() - 1 > recent_.size() || !within(word.back(), vocab)) continue;
        if (std::equal(word.begin(), word.end() - 1, recent_.end() - static_cast<std::ptrdiff_t>(word.size() - 1))) {
            logits[word.back()] = masked;
        }
    }
}

void SamplerState::penalise(float* logits, int64_t vocab) const {
    for (const Count& count : counts_) {
        if (!within(count.token, vocab)) continue;
        float logit = logits[count.token];
        if (spec_.repetition_penalty != 1.0f) {
            logit = logit > 0.0f ? logit / spec_.repetition_penalty : logit * spec_.repetition_penalty;
        }
        if (count.in_output > 0) {
            logit -= spec_.frequency_penalty * static_cast<float>(count.in_output) + spec_.presence_penalty;
        }
        logits[count.token] = logit;
    }
}

}  // namespace octavo
