#include "fusion.h"

#include <algorithm>
#include <variant>

namespace octavo {

namespace {

template <class Spans>
bool has_buffer(const Spans& spans, int32_t buffer) {
    return std::any_of(spans.begin(), spans.end(), [&](const BufferSpan& span) { return span.buffer == buffer; });
}

}  // namespace

bool reads(const Op& op, int32_t buffer) {
    return std::visit([&](const auto& specific) { return has_buffer(specific.reads(), buffer); }, op);
}

bool writes(const Op& op, int32_t buffer) {
    return std::visit([&](const auto& specific) { return has_buffer(specific.writes(), buffer); }, op);
}

namespace {

/// The gated activation of all that the linear `ops[index]` gives, when it comes next and is alone in reading that buffer.
const GatedActivationOp* gate_of(const std::vector<Op>& ops, size_t index, const BufferSpan& hidden) {
    const auto* linear = std::get_if<LinearOp>(&ops[index]);
    const auto* gate = index + 1 < ops.size() ? std::get_if<GatedActivationOp>(&ops[index + 1]) : nullptr;
    if (linear == nullptr || gate == nullptr || !(gate->in == linear->out) || gate->out.buffer == linear->in.buffer) return nullptr;
    const int32_t buffer = gate->in.buffer;
    if (!linear->weight->can_gate() || hidden.buffer == buffer) return nullptr;
    for (size_t i = 0; i < ops.size(); i++) {
        // Another layer's pair writes the buffer before it reads it.
        const bool in_pair = i > 0 && std::holds_alternative<GatedActivationOp>(ops[i]) && writes(ops[i - 1], buffer) &&
                             std::holds_alternative<LinearOp>(ops[i - 1]) &&
                             std::get<GatedActivationOp>(ops[i]).in == std::get<LinearOp>(ops[i - 1]).out;
        if (reads(ops[i], buffer) && !in_pair) return nullptr;
    }
    return gate;
}

/// The weight of the linear that is first to read all that the norm `ops[index]` gives; null when another op is first.
std::shared_ptr<const Matrix> reader_of(const std::vector<Op>& ops, size_t index) {
    const BufferSpan& out = std::get<RmsNormOp>(ops[index]).out;
    for (size_t i = index + 1; i < ops.size(); i++) {
        if (reads(ops[i], out.buffer)) {
            const auto* linear = std::get_if<LinearOp>(&ops[i]);
            return linear != nullptr && linear->in == out ? linear->weight : nullptr;
        }
        if (writes(ops[i], out.buffer) || std::holds_alternative<GatherOp>(ops[i])) return nullptr;
    }
    return nullptr;
}

}  // namespace

void fuse(std::vector<Op>& ops, const BufferSpan& hidden) {
    std::vector<Op> fused;
    for (size_t i = 0; i < ops.size(); i++) {
        fused.push_back(ops[i]);
        if (const GatedActivationOp* gate = gate_of(ops, i, hidden)) {
            auto& linear = std::get<LinearOp>(fused.back());
            linear.ungated = linear.out;
            linear.out = gate->out;
            linear.gate = gate->activation;
            i++;
        }
    }
    for (size_t i = 0; i < fused.size(); i++) {
        if (auto* norm = std::get_if<RmsNormOp>(&fused[i])) norm->reader = reader_of(fused, i);
    }
    ops = std::move(fused);
}

}  // namespace octavo
