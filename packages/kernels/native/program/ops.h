#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "../matrix/matrix.h"
#include "../ops/attention/attention.h"
#include "../ops/kernels.h"
#include "../ops/recurrent/state_runner.h"
#include "rank_group.h"
#include "routing_rule.h"

namespace octavo {

using Vector = std::vector<float>;

/// What of a token, beside an offset, is the row of an embedding.
enum class EmbeddingIndex { token, position, type };

/// Columns [column, column + width) of an activation buffer.
struct BufferSpan {
    int32_t buffer;
    int64_t column;
    int64_t width;

    bool operator==(const BufferSpan& other) const {
        return buffer == other.buffer && column == other.column && width == other.width;
    }
};

// The ops of src/ops.ts. Shapes have been checked by the caller; what only `fuse` sets has a default. `reads` and `writes` name the
// buffers; what an op updates in place stands in both.

struct EmbeddingOp {
    std::shared_ptr<const Matrix> weight;
    BufferSpan out;
    float scale;
    EmbeddingIndex index = EmbeddingIndex::token;
    int32_t offset = 0;
    bool takes_given = false;

    auto reads() const { return std::array<BufferSpan, 0>{}; }
    auto writes() const { return std::array{out}; }
};
/// Adds the step's given rows of this index to those tokens' rows.
struct AddGivenOp {
    BufferSpan on;
    int64_t index;

    auto reads() const { return std::array{on}; }
    auto writes() const { return std::array{on}; }
};
struct RmsNormOp {
    BufferSpan in;
    BufferSpan out;
    BufferSpan residual;  // buffer < 0 when there is none
    std::shared_ptr<const Vector> weight;
    float eps;
    float weight_offset;
    int64_t group;
    /// Distance between the weights of consecutive groups; 0 if all groups share theirs.
    int64_t weight_stride = 0;
    /// Rows are encoded for this matrix while they are at hand; may be null.
    std::shared_ptr<const Matrix> reader = nullptr;

    auto reads() const { return std::array{in, residual}; }
    auto writes() const { return std::array{out, residual}; }
};
struct LayerNormOp {
    BufferSpan in;
    BufferSpan out;
    BufferSpan residual;  // buffer < 0 when there is none
    std::shared_ptr<const Vector> weight;
    std::shared_ptr<const Vector> bias;  // may be null
    float eps;

    auto reads() const { return std::array{in, residual}; }
    auto writes() const { return std::array{out, residual}; }
};
struct LinearOp {
    BufferSpan in;
    BufferSpan out;
    std::shared_ptr<const Matrix> weight;
    std::shared_ptr<const Vector> bias;  // may be null
    /// Names the linear to adapters; below 0 they cannot reach it.
    int32_t site = -1;
    /// Gate and up are the halves of what the weight gives; `out` has half its rows.
    std::optional<Activation> gate = std::nullopt;
    /// With a gate: where all that the weight gives goes when it is wanted as it is.
    BufferSpan ungated = {-1, 0, 0};

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{out}; }
};
/// A product of each head with a matrix of its own.
struct HeadLinearOp {
    BufferSpan in;
    BufferSpan out;
    std::vector<std::shared_ptr<const Matrix>> weights;
    /// Columns of a head's input behind those that its matrix multiplies, which its output starts with.
    int64_t passed;

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{out}; }
};
struct RopeOp {
    BufferSpan on;
    int64_t head_dim;
    int32_t table;  // into Program::ropes

    auto reads() const { return std::array{on}; }
    auto writes() const { return std::array{on}; }
};
struct AttentionOp {
    BufferSpan q;
    BufferSpan k;  // buffer < 0 where another op writes the layer
    BufferSpan v;  // buffer < 0 there, too, and where a key is its value
    BufferSpan out;
    int64_t layer;
    AttentionSpec spec;
    std::shared_ptr<const Vector> sinks = nullptr;  // may be null
    int64_t look_ahead = 0;

    auto reads() const { return std::array{q, k, v}; }
    auto writes() const { return std::array{out}; }
};
struct GatedActivationOp {
    BufferSpan in;
    BufferSpan out;
    Activation activation;

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{out}; }
};
struct ActivationOp {
    BufferSpan on;
    Activation activation;

    auto reads() const { return std::array{on}; }
    auto writes() const { return std::array{on}; }
};
/// The gated MLP of one expert. Gate and up are two matrices, or one stack of them, gate above up.
struct ExpertWeights {
    std::shared_ptr<const Matrix> gate;
    std::shared_ptr<const Matrix> up;  // null when stacked
    std::shared_ptr<const Matrix> down;
    std::shared_ptr<const Vector> gate_bias;  // biases may be null; stacked as the matrices are
    std::shared_ptr<const Vector> up_bias;
    std::shared_ptr<const Vector> down_bias;
};
struct ExpertsOp {
    BufferSpan in;
    BufferSpan scores;
    BufferSpan out;
    std::vector<ExpertWeights> experts;
    RoutingRule rule;
    std::shared_ptr<const Vector> selection_bias;  // may be null
    std::shared_ptr<const Vector> expert_scales;  // may be null
    Activation activation;
    /// Experts of `gate` and `down` alone, whose activation multiplies nothing.
    bool is_plain;
    /// Gate and up give this rank's part of the inner columns, down its part of `out`.
    bool is_split = false;
    /// An expert's weight multiplies what it reads, not what it gives.
    bool weighs_input = false;

    auto reads() const { return std::array{in, scores}; }
    auto writes() const { return std::array{out}; }
};
struct SigmoidGateOp {
    BufferSpan in;  // one column
    BufferSpan on;

    auto reads() const { return std::array{in, on}; }
    auto writes() const { return std::array{on}; }
};
/// on = activation(in) * on
struct GateOp {
    BufferSpan in;
    BufferSpan on;
    Activation activation;

    auto reads() const { return std::array{in, on}; }
    auto writes() const { return std::array{on}; }
};
/// Runs of `run` columns go to `first` and `second` in turn.
struct SplitOp {
    BufferSpan in;
    BufferSpan first;
    BufferSpan second;
    int64_t run;

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{first, second}; }
};
struct ConvolutionOp {
    BufferSpan in;
    BufferSpan out;
    ConvolutionSpec spec;  // without weights
    std::shared_ptr<const Vector> weight;  // [taps][width]
    std::shared_ptr<const Vector> bias;  // may be null

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{out}; }
};
struct RecurrenceOp {
    BufferSpan q;
    BufferSpan k;
    BufferSpan v;
    BufferSpan decay;
    BufferSpan strength;
    BufferSpan out;
    RecurrenceSpec spec;  // without vectors
    std::shared_ptr<const Vector> rates;
    std::shared_ptr<const Vector> biases;
    std::shared_ptr<const Vector> skips;  // may be null

    auto reads() const { return std::array{q, k, v, decay, strength}; }
    auto writes() const { return std::array{out}; }
};
struct AddOp {
    BufferSpan in;
    BufferSpan out;

    auto reads() const { return std::array{in, out}; }
    auto writes() const { return std::array{out}; }
};
struct ScaleOp {
    BufferSpan on;
    float factor;
    std::shared_ptr<const Vector> by = nullptr;  // one value; may be null

    auto reads() const { return std::array{on}; }
    auto writes() const { return std::array{on}; }
};
struct ClampOp {
    BufferSpan on;
    float least;
    float most;

    auto reads() const { return std::array{on}; }
    auto writes() const { return std::array{on}; }
};
struct RoundE4m3Op {
    BufferSpan in;
    BufferSpan out;
    int64_t group;

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{out}; }
};
/// Columns of `on` that other ranks have computed.
struct ExchangeOp {
    BufferSpan on;
    ExchangeKind kind;

    auto reads() const { return std::array{on}; }
    auto writes() const { return std::array{on}; }
};
/// Rows that an earlier stage computed, from the plan.
struct ReceiveOp {
    BufferSpan out;

    auto reads() const { return std::array<BufferSpan, 0>{}; }
    auto writes() const { return std::array{out}; }
};
/// Rows that a later stage goes on with, to the result.
struct SendOp {
    BufferSpan in;

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array<BufferSpan, 0>{}; }
};
struct GatherOp {
    BufferSpan in;
    BufferSpan out;

    auto reads() const { return std::array{in}; }
    auto writes() const { return std::array{out}; }
};

using Op = std::variant<EmbeddingOp, AddGivenOp, RmsNormOp, LayerNormOp, LinearOp, HeadLinearOp, RopeOp, AttentionOp, GatedActivationOp, ActivationOp, ExpertsOp,
                        SigmoidGateOp, GateOp, SplitOp, ConvolutionOp, RecurrenceOp, AddOp, ScaleOp, ClampOp, RoundE4m3Op, ExchangeOp,
                        ReceiveOp, SendOp, GatherOp>;

}  // namespace octavo
