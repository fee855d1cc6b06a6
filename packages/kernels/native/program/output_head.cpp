#include "output_head.h"

#include <algorithm>
#include <cstring>

#include "../core/half.h"
#include "row_digest.h"

namespace octavo {

namespace {

/// Rows of logits that exist at a time.
constexpr int64_t rows_at_once = 64;

}  // namespace

HeadRunner::HeadRunner(ThreadPool& pool) : pool_(pool), threads_(static_cast<size_t>(pool.size())) {}

void HeadRunner::lay_out(const StepPlan& plan, int64_t vocab, int64_t width, StepResult& result) {
    const size_t num_rows = plan.outputs.size();
    Place end{0, 0, 0, 0};
    places_.clear();
    pending_.clear();
    for (size_t i = 0; i < num_rows; i++) {
        const OutputRow& row = plan.outputs[i];
        places_.push_back(end);
        if (row.kind == OutputKind::hidden) {
            end.hidden += width;
            continue;
        }
        pending_.push_back(static_cast<int32_t>(i));
        end.top += row.num_top;
        end.ids += row.num_ids;
        if (plan.wants_logits) end.logits += vocab;
    }
    result.tokens.assign(num_rows, -1);
    result.errors.assign(num_rows, 0);
    result.logprobs.assign(num_rows, 0.0f);
    result.ranks.assign(num_rows, 0);
    result.top_tokens.assign(static_cast<size_t>(end.top), 0);
    result.top_logprobs.assign(static_cast<size_t>(end.top), 0.0f);
    result.id_logprobs.assign(static_cast<size_t>(end.ids), 0.0f);
    result.hidden.assign(static_cast<size_t>(end.hidden), 0.0f);
    result.logits.assign(static_cast<size_t>(end.logits), 0.0f);
    const bool has_digests = std::any_of(plan.outputs.begin(), plan.outputs.end(), [](const OutputRow& row) { return row.wants_digest; });
    result.digests.assign(has_digests ? num_rows : 0, 0);
}

void HeadRunner::run(const OutputHead& head, Rows hidden, int64_t width, bool gathered, const StepPlan& plan,
                     StepResult& result, Workspace& workspace, Rank& rank, const std::atomic<bool>& cancelled) {
    const bool is_split = head.all_rows > 0;
    const int64_t vocab = is_split ? head.all_rows : head.weight ? head.weight->rows() : 0;
    const int64_t own_column = is_split ? rank.part_of(vocab).first : 0;
    lay_out(plan, vocab, width, result);
    const auto source = [&](int32_t output) {
        return hidden.row(gathered ? output : plan.outputs[static_cast<size_t>(output)].token);
    };
    for (size_t i = 0; i < plan.outputs.size(); i++) {
        if (plan.outputs[i].kind != OutputKind::hidden) continue;
        const float* state = source(static_cast<int32_t>(i));
        if (!std::all_of(state, state + width, f32_is_finite)) result.errors[i] = static_cast<uint8_t>(RowError::non_finite_logits);
        std::memcpy(result.hidden.data() + places_[i].hidden, state, static_cast<size_t>(width) * sizeof(float));
    }

    const int64_t num_pending = static_cast<int64_t>(pending_.size());
    if (num_pending > 0 && rank.is_first()) {
        // Here, because the pool's functions may not throw.
        for (ThreadState& thread : threads_) {
            thread.sampler.reserve(vocab);
            thread.top.reserve(vocab);
        }
    }
    const auto row_of = [&](int64_t pending) -> const OutputRow& {
        return plan.outputs[static_cast<size_t>(pending_[static_cast<size_t>(pending)])];
    };
    const int64_t stride = (vocab + 15) / 16 * 16 + 16;
    for (int64_t first = 0; first < num_pending; first += rows_at_once) {
        if (cancelled.load(std::memory_order_relaxed)) return;
        const int64_t count = std::min(rows_at_once, num_pending - first);
        if (inputs_.size() < static_cast<size_t>(count * width)) inputs_.resize(static_cast<size_t>(count * width));
        if (logits_.size() < static_cast<size_t>(count * stride)) logits_.resize(static_cast<size_t>(count * stride));
        for (int64_t i = 0; i < count; i++) {
            std::memcpy(inputs_.data() + i * width, source(pending_[static_cast<size_t>(first + i)]),
                        static_cast<size_t>(width) * sizeof(float));
        }
        head.weight->linear(inputs_.data(), width, count, logits_.data() + own_column, stride, head.bias ? head.bias->data() : nullptr,
                            workspace, pool_);
        if (is_split) {
            rank.exchange({logits_.data(), stride}, count, vocab, ExchangeKind::parts_to_first, pool_);
            if (!rank.is_first()) continue;
        }
        pool_.parallel_for(count, 1, [&](int64_t begin, int64_t end, int thread) {
            // A run of draft tokens is finished by the thread that takes the row before it, since each row needs the one before.
            for (int64_t i = begin; i < end; i++) {
                if (i > 0 && row_of(first + i).after_draft) continue;
                for (int64_t j = i; j == i || (j < count && row_of(first + j).after_draft); j++) {
                    finish_row(plan, static_cast<size_t>(pending_[static_cast<size_t>(first + j)]), logits_.data() + j * stride,
                               vocab, head, result, threads_[static_cast<size_t>(thread)]);
                }
            }
        });
    }
}

void HeadRunner::finish_row(const StepPlan& plan, size_t index, float* logits, int64_t vocab, const OutputHead& head,
                            StepResult& result, ThreadState& state) {
    const OpKernels& kernels = op_kernels();
    const OutputRow& row = plan.outputs[index];
    const Place& place = places_[index];
    if (row.after_draft && result.tokens[index - 1] != plan.token_ids[static_cast<size_t>(row.token)]) return;
    if (head.scale != 1.0f) kernels.scale(logits, head.scale, vocab);
    if (head.soft_cap != 0.0f) kernels.soft_cap(logits, head.soft_cap, vocab);
    if (row.wants_digest) result.digests[index] = xxhash64(logits, static_cast<size_t>(vocab) * sizeof(float));
    if (plan.wants_logits) std::copy(logits, logits + vocab, result.logits.data() + place.logits);

    bool bad = false;
    const float largest = kernels.largest(logits, vocab, &bad);
    if (bad) {
        result.errors[index] = static_cast<uint8_t>(RowError::non_finite_logits);
        return;
    }
    const bool needs_raw = row.wants_logprobs || row.num_top > 0 || row.num_ids > 0;
    int32_t token = row.target;
    if (row.kind == OutputKind::sample) {
        const Sampled sampled = state.sampler.sample(logits, vocab, largest, row.sampling, needs_raw);
        if (sampled.error != RowError::none) {
            result.errors[index] = static_cast<uint8_t>(sampled.error);
            return;
        }
        token = sampled.token;
    }
    result.tokens[index] = token;
    if (!needs_raw) return;

    const LogSoftmax softmax = log_softmax(logits, vocab, largest);
    result.logprobs[index] = softmax.of(logits[token]);
    result.ranks[index] = rank_of(logits, vocab, token);
    if (row.num_top > 0) {
        int32_t* top = result.top_tokens.data() + place.top;
        state.top.find(logits, vocab, row.num_top, top);
        for (int32_t i = 0; i < row.num_top; i++) {
            result.top_logprobs[static_cast<size_t>(place.top + i)] = softmax.of(logits[top[i]]);
        }
    }
    for (int32_t i = 0; i < row.num_ids; i++) {
        const int32_t id = plan.logprob_ids[static_cast<size_t>(row.first_id + i)];
        result.id_logprobs[static_cast<size_t>(place.ids + i)] = softmax.of(logits[id]);
    }
}

}  // namespace octavo
