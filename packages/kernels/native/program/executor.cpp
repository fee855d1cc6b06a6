#include "executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "../ops/rows.h"
#include "fusion.h"

namespace octavo {

struct Executor::Step {
    Program& program;
    const KvCache& cache;
    const StepPlan& plan;
    /// Rows that ops run over: the step's tokens, after `gather` its output rows.
    int64_t num_rows;
    bool gathered;
};

Executor::Executor(ThreadPool& pool) : pool_(pool), attention_(pool), adapters_(pool), experts_(pool), head_(pool) {}

void Executor::run(Program& program, const KvCache& cache, const StepPlan& plan, StepResult& result,
                   const std::atomic<bool>& cancelled) {
    const auto start = std::chrono::steady_clock::now();
    Step step{program, cache, plan, plan.num_tokens, false};
    attention_.begin(plan.layout());
    adapters_.begin(plan);
    for (RopeTable& rope : program.ropes()) rope.fill(plan.positions.data(), plan.num_tokens, pool_);
    encoded_.span = kNoSpan;
    for (const Op& op : program.ops()) {
        if (cancelled.load(std::memory_order_relaxed)) return;
        if (writes(op, encoded_.span.buffer) || std::holds_alternative<GatherOp>(op)) encoded_.span = kNoSpan;
        if (step.num_rows > 0) std::visit([&](const auto& specific) { run_op(specific, step); }, op);
    }
    head_.run(program.head(), program.rows(program.hidden()), program.hidden().width, step.gathered, plan, result,
              workspace_, cancelled);
    result.compute_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void Executor::run_op(const EmbeddingOp& op, Step& step) {
    const Rows out = step.program.rows(op.out);
    for_rows(pool_, step.num_rows, op.out.width, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            op.weight->row(step.plan.token_ids[static_cast<size_t>(i)], out.row(i));
            if (op.scale != 1.0f) op_kernels().scale(out.row(i), op.scale, op.out.width);
        }
    });
}

void Executor::run_op(const RmsNormOp& op, Step& step) {
    const Rows in = step.program.rows(op.in);
    const Rows out = step.program.rows(op.out);
    const bool has_residual = op.residual.buffer >= 0;
    const Rows residual = has_residual ? step.program.rows(op.residual) : Rows{nullptr, 0};
    void* encoded = op.reader ? encoded_rows(*op.reader, step) : nullptr;
    for_rows(pool_, step.num_rows, op.in.width / 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            op_kernels().rms_norm(in.row(i), op.weight->data(), op.weight_offset, op.eps, op.in.width, op.group,
                                  has_residual ? residual.row(i) : nullptr, out.row(i));
            if (encoded != nullptr) op.reader->encode(out.row(i), i, step.num_rows, encoded);
        }
    });
    if (encoded != nullptr) encoded_ = {op.out, op.reader->encoding()};
}

void* Executor::encoded_rows(const Matrix& matrix, const Step& step) {
    return workspace_.get(Workspace::kRowsSlot, matrix.encoded_bytes(step.num_rows));
}

void Executor::run_op(const LinearOp& op, Step& step) {
    const Rows in = step.program.rows(op.in);
    // Adapters add to gate and up, before they are joined.
    const bool is_adapted = adapters_.touches(op.site);
    const bool is_gated = op.gate && !is_adapted;
    const Rows out = step.program.rows(op.gate && is_adapted ? op.ungated : op.out);
    const RowEncoding encoding = op.weight->encoding();
    void* rows = encoded_rows(*op.weight, step);
    if (!(encoded_.span == op.in && encoded_.encoding == encoding)) {
        op.weight->encode_all(in.data, in.stride, step.num_rows, rows, pool_);
        encoded_ = {op.in, encoding};
    }
    const auto activate = [&](const float* gate, const float* up, float* to, int64_t count) {
        op_kernels().gated_activation(*op.gate, gate, up, to, count);
    };
    const GateFunction gate(activate);
    op.weight->multiply(rows, step.num_rows, {out.data, out.stride, op.bias ? op.bias->data() : nullptr, is_gated ? &gate : nullptr},
                        workspace_, pool_);
    if (!is_adapted) return;
    adapters_.add(op.site, in, out);
    if (op.gate) run_op(GatedActivationOp{op.ungated, op.out, *op.gate}, step);
}

void Executor::run_op(const RopeOp& op, Step& step) {
    const Rows on = step.program.rows(op.on);
    const RopeTable& rope = step.program.ropes()[static_cast<size_t>(op.table)];
    for_rows(pool_, step.num_rows, op.on.width / 2, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            op_kernels().rope(on.row(i), op.on.width / op.head_dim, op.head_dim, rope.cos(i), rope.sin(i), rope.pairs(),
                              rope.spec().layout);
        }
    });
}

void Executor::run_op(const AttentionOp& op, Step& step) {
    const KvShape& shape = step.cache.shape();
    const KvLayer& layer = step.cache.layer(op.layer);
    attention_.store(shape, layer, step.program.rows(op.k), step.program.rows(op.v));
    AttentionSpec spec = op.spec;
    if (op.sinks) spec.sinks = op.sinks->data();
    attention_.attend(spec, shape, layer, step.program.rows(op.q), step.program.rows(op.out));
}

void Executor::run_op(const GatedActivationOp& op, Step& step) {
    // Elementwise, so that even one row can be shared out.
    constexpr int64_t piece = 1024;
    const Rows in = step.program.rows(op.in);
    const Rows out = step.program.rows(op.out);
    const int64_t pieces = (op.out.width + piece - 1) / piece;
    for_rows(pool_, step.num_rows * pieces, piece * 2, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; unit++) {
            const int64_t column = unit % pieces * piece;
            const float* gate = in.row(unit / pieces) + column;
            op_kernels().gated_activation(op.activation, gate, gate + op.out.width, out.row(unit / pieces) + column,
                                          std::min(piece, op.out.width - column));
        }
    });
}

void Executor::run_op(const ExpertsOp& op, Step& step) {
    const Program& program = step.program;
    experts_.run(op, program.rows(op.in), program.rows(op.scores), program.rows(op.out), step.num_rows);
}

void Executor::run_op(const SigmoidGateOp& op, Step& step) {
    const Rows in = step.program.rows(op.in);
    const Rows on = step.program.rows(op.on);
    for_rows(pool_, step.num_rows, op.on.width / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) op_kernels().scale(on.row(i), 1.0f / (1.0f + std::exp(-*in.row(i))), op.on.width);
    });
}

void Executor::run_op(const AddOp& op, Step& step) {
    const Rows in = step.program.rows(op.in);
    const Rows out = step.program.rows(op.out);
    for_rows(pool_, step.num_rows, op.in.width / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) op_kernels().add(in.row(i), out.row(i), op.in.width);
    });
}

void Executor::run_op(const ScaleOp& op, Step& step) {
    const Rows on = step.program.rows(op.on);
    for_rows(pool_, step.num_rows, op.on.width / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) op_kernels().scale(on.row(i), op.factor, op.on.width);
    });
}

void Executor::run_op(const GatherOp& op, Step& step) {
    const std::vector<OutputRow>& outputs = step.plan.outputs;
    const Rows in = step.program.rows(op.in);
    const Rows out = step.program.rows(op.out);
    const size_t width = static_cast<size_t>(op.in.width);
    const size_t bytes = width * sizeof(float);
    // Through a copy: `in` and `out` may be one buffer.
    if (gathered_.size() < outputs.size() * width) gathered_.resize(outputs.size() * width);
    for (size_t i = 0; i < outputs.size(); i++) std::memcpy(gathered_.data() + i * width, in.row(outputs[i].token), bytes);
    for (size_t i = 0; i < outputs.size(); i++) {
        std::memcpy(out.row(static_cast<int64_t>(i)), gathered_.data() + i * width, bytes);
    }
    step.num_rows = static_cast<int64_t>(outputs.size());
    step.gathered = true;
    adapters_.gather(step.plan);
}

}  // namespace octavo
