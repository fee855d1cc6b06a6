#include "logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../ops/kernels.h"

namespace octavo {

LogSoftmax log_softmax(const float* logits, int64_t vocab, float largest) {
    return {static_cast<double>(largest), std::log(op_kernels().sum_exponentials(logits, vocab, largest))};
}

int32_t rank_of(const float* logits, int64_t vocab, int32_t token) {
    return static_cast<int32_t>(1 + op_kernels().count_greater(logits, vocab, logits[token]));
}

void TopTokens::reserve(int64_t vocab) {
    if (order_.size() < static_cast<size_t>(vocab)) order_.resize(static_cast<size_t>(vocab));
}

void TopTokens::find(const float* logits, int64_t vocab, int64_t n, int32_t* tokens) {
    const auto better = [logits](int32_t a, int32_t b) {
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    };
    if (n * 8 >= vocab) {
        const auto end = order_.begin() + vocab;
        std::iota(order_.begin(), end, 0);
        std::partial_sort(order_.begin(), order_.begin() + n, end, better);
        std::copy(order_.begin(), order_.begin() + n, tokens);
        return;
    }
    // A heap with the worst of the best on top. Ids ascend, so an equal logit never displaces one that is there.
    std::iota(tokens, tokens + n, 0);
    std::make_heap(tokens, tokens + n, better);
    const OpKernels& kernels = op_kernels();
    int64_t next = n;
    while ((next = n == 0 ? vocab : kernels.find_greater(logits, next, vocab, logits[tokens[0]])) < vocab) {
        std::pop_heap(tokens, tokens + n, better);
        tokens[n - 1] = static_cast<int32_t>(next++);
        std::push_heap(tokens, tokens + n, better);
    }
    std::sort_heap(tokens, tokens + n, better);
}

}  // namespace octavo
