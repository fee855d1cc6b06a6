#pragma once
#include <chrono>
#include <cstddef>

#include "../core/enumeration.h"
#include "ops.h"
#include "step_plan.h"

namespace octavo {

/// What times are told of: the kinds of `Op` in their order, recurrences of the plain sum apart, and behind them the output head.
OCTAVO_ENUMERATION(OpKind, embedding, add_given, rms_norm, layer_norm, linear, head_linear, rope, attention, gated_activation, activation, experts,
                   sigmoid_gate, gate, split, convolution, gated_delta_rule, add, scale, clamp, round_e4m3, exchange, receive, send, gather,
                   state_space, head);

static_assert(std::variant_size_v<Op> == static_cast<size_t>(OpKind::state_space));

inline OpKind kind_of(const Op& op) {
    if (const auto* recurrence = std::get_if<RecurrenceOp>(&op)) return recurrence->spec.is_delta ? OpKind::gated_delta_rule : OpKind::state_space;
    return static_cast<OpKind>(op.index());
}

/// Adds up how long each kind of op takes, where a plan wants to know; else it does not look at the clock.
class OpClock {
public:
    OpClock(const StepPlan& plan, StepResult& result) : result_(result), is_wanted_(plan.wants_op_times) {
        constexpr size_t num_kinds = static_cast<size_t>(OpKind::head) + 1;
        result.op_counts.assign(is_wanted_ ? num_kinds : 0, 0);
        result.op_ms.assign(is_wanted_ ? num_kinds : 0, 0.0);
        if (is_wanted_) last_ = std::chrono::steady_clock::now();
    }

    /// All since the one before was this op.
    void end(OpKind kind) {
        const auto now = std::chrono::steady_clock::now();
        result_.op_counts[static_cast<size_t>(kind)] += 1;
        result_.op_ms[static_cast<size_t>(kind)] += std::chrono::duration<double, std::milli>(now - last_).count();
        last_ = now;
    }

    bool is_wanted() const { return is_wanted_; }

private:
    StepResult& result_;
    const bool is_wanted_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace octavo
