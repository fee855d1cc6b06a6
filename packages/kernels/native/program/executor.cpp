#include "executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

#include "../ops/rows.h"
#include "fusion.h"
#include "op_clock.h"

namespace octavo {

namespace {

/// Values of E4M3 times one scale, the largest magnitude / 448: steps of an eighth of their power of two, of 2^-9 below 2^-6.
void round_e4m3(const float* in, int64_t count, float* out) {
    float most = 0.0f;
    for (int64_t i = 0; i < count; i++) most = std::max(most, std::fabs(in[i]));
    const float scale = most / 448.0f;
    for (int64_t i = 0; i < count; i++) {
        const float value = scale > 0.0f ? in[i] / scale : 0.0f;
        const int exponent = std::max(value == 0.0f ? -6 : std::ilogb(value), -6);
        const float step = std::ldexp(1.0f, exponent - 3);
        out[i] = std::min(448.0f, std::max(-448.0f, std::nearbyint(value / step) * step)) * scale;
    }
}

/// The row of an output's token, or what it and those before it give together, added up in their order.
void pool_rows(const Rows& in, const OutputRow& output, int64_t width, float* out) {
    const bool is_pooled = output.pooling != Pooling::none;
    const int64_t first = is_pooled ? output.token - output.num_pooled + 1 : output.token;
    std::memcpy(out, in.row(first), static_cast<size_t>(width) * sizeof(float));
    for (int64_t token = first + 1; token <= output.token; token++) {
        const float* row = in.row(token);
        if (output.pooling == Pooling::mean) {
            op_kernels().add(row, out, width);
        } else {
            for (int64_t i = 0; i < width; i++) out[i] = row[i] > out[i] || row[i] != row[i] ? row[i] : out[i];
        }
    }
    if (output.pooling == Pooling::mean) op_kernels().scale(out, 1.0f / static_cast<float>(output.num_pooled), width);
}

}  // namespace

/// One step; runs each kind of op.
struct Executor::Step {
    Executor& executor;
    Program& program;
    const KvCache& cache;
    const StepPlan& plan;
    /// Rows that ops run over: the step's tokens, after `gather` its output rows.
    int64_t num_rows;
    StepResult& result;
    bool gathered = false;
    int64_t num_received = 0;

    int32_t embedding_row(const EmbeddingOp& op, int64_t token) const {
        const size_t at = static_cast<size_t>(token);
        switch (op.index) {
            case EmbeddingIndex::token:
                return plan.token_ids[at] + op.offset;
            case EmbeddingIndex::position:
                return plan.positions[at] + op.offset;
            case EmbeddingIndex::type:
                return (plan.token_types.empty() ? 0 : plan.token_types[at]) + op.offset;
        }
        return 0;
    }

    void operator()(const EmbeddingOp& op) {
        const Rows out = program.rows(op.out);
        for_rows(executor.pool_, num_rows, op.out.width, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                op.weight->row(embedding_row(op, i), out.row(i));
                if (op.scale != 1.0f) op_kernels().scale(out.row(i), op.scale, op.out.width);
            }
        });
        if (!op.takes_given) return;
        const float* given = plan.given_rows.data();
        for (const int32_t token : plan.given_tokens) {
            std::memcpy(out.row(token), given, static_cast<size_t>(op.out.width) * sizeof(float));
            given += op.out.width;
        }
    }

    void operator()(const AddGivenOp& op) {
        const Rows out = program.rows(op.on);
        const int64_t width = op.on.width;
        const auto count = static_cast<int64_t>(plan.given_tokens.size());
        for_rows(executor.pool_, count, width, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                const float* given = plan.given_added.data() + (op.index * count + i) * width;
                op_kernels().add(given, out.row(plan.given_tokens[static_cast<size_t>(i)]), width);
            }
        });
    }

    void operator()(const RmsNormOp& op) {
        const Rows in = program.rows(op.in);
        const Rows out = program.rows(op.out);
        const bool has_residual = op.residual.buffer >= 0;
        const Rows residual = has_residual ? program.rows(op.residual) : Rows{nullptr, 0};
        void* encoded = op.reader ? encoded_rows(*op.reader) : nullptr;
        for_rows(executor.pool_, num_rows, op.in.width / 4, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                op_kernels().rms_norm(in.row(i), op.weight->data(), op.weight_offset, op.eps, op.in.width, op.group, op.weight_stride,
                                      has_residual ? residual.row(i) : nullptr, out.row(i));
                if (encoded != nullptr) op.reader->encode(out.row(i), i, num_rows, encoded);
            }
        });
        if (encoded != nullptr) executor.encoded_ = {op.out, op.reader->encoding()};
    }

    void operator()(const LayerNormOp& op) {
        const Rows in = program.rows(op.in);
        const Rows out = program.rows(op.out);
        const bool has_residual = op.residual.buffer >= 0;
        const Rows residual = has_residual ? program.rows(op.residual) : Rows{nullptr, 0};
        for_rows(executor.pool_, num_rows, op.in.width / 2, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                op_kernels().layer_norm(in.row(i), op.weight->data(), op.bias ? op.bias->data() : nullptr, op.eps, op.in.width,
                                        has_residual ? residual.row(i) : nullptr, out.row(i));
            }
        });
    }

    /// Room for the step's rows as `matrix` takes them.
    void* encoded_rows(const Matrix& matrix) const {
        return executor.workspace_.get(Workspace::kRowsSlot, matrix.encoded_bytes(num_rows));
    }

    void operator()(const LinearOp& op) {
        const Rows in = program.rows(op.in);
        // Adapters add to gate and up, before they are joined.
        const bool is_adapted = executor.adapters_.touches(op.site);
        const bool is_gated = op.gate && !is_adapted;
        const Rows out = program.rows(op.gate && is_adapted ? op.ungated : op.out);
        const RowEncoding encoding = op.weight->encoding();
        void* rows = encoded_rows(*op.weight);
        if (!(executor.encoded_.span == op.in && executor.encoded_.encoding == encoding)) {
            op.weight->encode_all(in.data, in.stride, num_rows, rows, executor.pool_);
            executor.encoded_ = {op.in, encoding};
        }
        const auto activate = [&](const float* gate, const float* up, float* to, int64_t count) {
            op_kernels().gated_activation(*op.gate, gate, up, to, count);
        };
        const GateFunction gate(activate);
        op.weight->multiply(rows, num_rows, {out.data, out.stride, op.bias ? op.bias->data() : nullptr, is_gated ? &gate : nullptr},
                            executor.workspace_, executor.pool_);
        if (!is_adapted) return;
        executor.adapters_.add(op.site, in, out);
        if (op.gate) (*this)(GatedActivationOp{op.ungated, op.out, *op.gate});
    }

    void operator()(const HeadLinearOp& op) { executor.heads_.run(op, program.rows(op.in), program.rows(op.out), num_rows); }

    void operator()(const RopeOp& op) {
        const Rows on = program.rows(op.on);
        const RopeTable& rope = program.ropes()[static_cast<size_t>(op.table)];
        for_rows(executor.pool_, num_rows, op.on.width / 2, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                op_kernels().rope(on.row(i), op.on.width / op.head_dim, op.head_dim, rope.cos(i), rope.sin(i), rope.pairs(),
                                  rope.spec().layout);
            }
        });
    }

    void operator()(const AttentionOp& op) {
        const KvShape& shape = cache.shape(op.layer);
        const KvLayer& layer = cache.layer(op.layer);
        if (op.k.buffer >= 0) {
            const Rows keys = program.rows(op.k);
            executor.attention_.store(shape, layer, keys, shape.is_latent ? keys : program.rows(op.v));
        }
        AttentionSpec spec = op.spec;
        if (op.sinks) spec.sinks = op.sinks->data();
        spec.look_ahead = op.look_ahead;
        executor.attention_.attend(spec, shape, layer, program.rows(op.q), program.rows(op.out));
    }

    void operator()(const GatedActivationOp& op) {
        // Elementwise, so that even one row can be shared out.
        constexpr int64_t piece = 1024;
        const Rows in = program.rows(op.in);
        const Rows out = program.rows(op.out);
        const int64_t pieces = (op.out.width + piece - 1) / piece;
        for_rows(executor.pool_, num_rows * pieces, piece * 2, [&](int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; unit++) {
                const int64_t column = unit % pieces * piece;
                const float* gate = in.row(unit / pieces) + column;
                op_kernels().gated_activation(op.activation, gate, gate + op.out.width, out.row(unit / pieces) + column,
                                              std::min(piece, op.out.width - column));
            }
        });
    }

    void operator()(const ActivationOp& op) {
        // Gates ones, a piece at a time.
        constexpr int64_t piece = 512;
        static const std::array<float, piece> ones = [] {
            std::array<float, piece> filled{};
            filled.fill(1.0f);
            return filled;
        }();
        const Rows on = program.rows(op.on);
        for_rows(executor.pool_, num_rows, op.on.width * 2, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                for (int64_t column = 0; column < op.on.width; column += piece) {
                    float* at = on.row(i) + column;
                    op_kernels().gated_activation(op.activation, at, ones.data(), at, std::min(piece, op.on.width - column));
                }
            }
        });
    }

    void operator()(const ExpertsOp& op) {
        executor.experts_.run(op, program.rows(op.in), program.rows(op.scores), program.rows(op.out), num_rows, program.rank());
    }

    void operator()(const SigmoidGateOp& op) {
        const Rows in = program.rows(op.in);
        const Rows on = program.rows(op.on);
        for_rows(executor.pool_, num_rows, op.on.width / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) op_kernels().scale(on.row(i), 1.0f / (1.0f + std::exp(-*in.row(i))), op.on.width);
        });
    }

    void operator()(const GateOp& op) {
        const Rows in = program.rows(op.in);
        const Rows on = program.rows(op.on);
        for_rows(executor.pool_, num_rows, op.on.width * 2, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                op_kernels().gated_activation(op.activation, in.row(i), on.row(i), on.row(i), op.on.width);
            }
        });
    }

    void operator()(const SplitOp& op) {
        const Rows in = program.rows(op.in);
        const Rows parts[] = {program.rows(op.first), program.rows(op.second)};
        const size_t bytes = static_cast<size_t>(op.run) * sizeof(float);
        for_rows(executor.pool_, num_rows, op.in.width / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                for (int64_t run = 0; run < op.in.width / op.run; run++) {
                    std::memcpy(parts[run % 2].row(i) + run / 2 * op.run, in.row(i) + run * op.run, bytes);
                }
            }
        });
    }

    void operator()(const ConvolutionOp& op) {
        ConvolutionSpec spec = op.spec;
        spec.weight = op.weight->data();
        spec.bias = op.bias ? op.bias->data() : nullptr;
        executor.states_.convolve(spec, program.rows(op.in), program.rows(op.out));
    }

    void operator()(const RecurrenceOp& op) {
        RecurrenceSpec spec = op.spec;
        spec.rates = op.rates->data();
        spec.biases = op.biases->data();
        spec.skips = op.skips ? op.skips->data() : nullptr;
        executor.states_.recur(spec, {program.rows(op.q), program.rows(op.k), program.rows(op.v), program.rows(op.decay),
                                      program.rows(op.strength), program.rows(op.out)});
    }

    void operator()(const AddOp& op) {
        const Rows in = program.rows(op.in);
        const Rows out = program.rows(op.out);
        for_rows(executor.pool_, num_rows, op.in.width / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) op_kernels().add(in.row(i), out.row(i), op.in.width);
        });
    }

    void operator()(const ScaleOp& op) {
        const Rows on = program.rows(op.on);
        const float factor = op.by ? op.factor * op.by->front() : op.factor;
        for_rows(executor.pool_, num_rows, op.on.width / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) op_kernels().scale(on.row(i), factor, op.on.width);
        });
    }

    void operator()(const ClampOp& op) {
        const Rows on = program.rows(op.on);
        for_rows(executor.pool_, num_rows, op.on.width / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) op_kernels().clamp(on.row(i), op.least, op.most, op.on.width);
        });
    }

    void operator()(const RoundE4m3Op& op) {
        const Rows in = program.rows(op.in);
        const Rows out = program.rows(op.out);
        for_rows(executor.pool_, num_rows, op.in.width * 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                for (int64_t first = 0; first < op.in.width; first += op.group) {
                    round_e4m3(in.row(i) + first, std::min(op.group, op.in.width - first), out.row(i) + first);
                }
            }
        });
    }

    void operator()(const ExchangeOp& op) {
        program.rank().exchange(program.rows(op.on), num_rows, op.on.width, op.kind, executor.pool_);
    }

    void operator()(const ReceiveOp& op) {
        const Rows out = program.rows(op.out);
        for (int64_t i = 0; i < num_rows; i++, num_received += op.out.width) {
            std::memcpy(out.row(i), plan.received.data() + num_received, static_cast<size_t>(op.out.width) * sizeof(float));
        }
    }

    void operator()(const SendOp& op) {
        if (plan.without_sent) return;
        const Rows in = program.rows(op.in);
        for (int64_t i = 0; i < num_rows; i++) result.sent.insert(result.sent.end(), in.row(i), in.row(i) + op.in.width);
    }

    void operator()(const GatherOp& op) {
        const std::vector<OutputRow>& outputs = plan.outputs;
        const Rows in = program.rows(op.in);
        const Rows out = program.rows(op.out);
        const size_t width = static_cast<size_t>(op.in.width);
        const size_t bytes = width * sizeof(float);
        // Through a copy: `in` and `out` may be one buffer.
        if (executor.gathered_.size() < outputs.size() * width) executor.gathered_.resize(outputs.size() * width);
        for_rows(executor.pool_, static_cast<int64_t>(outputs.size()), op.in.width * 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) {
                pool_rows(in, outputs[static_cast<size_t>(i)], op.in.width, executor.gathered_.data() + i * op.in.width);
            }
        });
        for (size_t i = 0; i < outputs.size(); i++) {
            std::memcpy(out.row(static_cast<int64_t>(i)), executor.gathered_.data() + i * width, bytes);
        }
        num_rows = static_cast<int64_t>(outputs.size());
        gathered = true;
        executor.adapters_.gather(plan);
    }
};

Executor::Executor(ThreadPool& pool) : pool_(pool), attention_(pool), adapters_(pool), states_(pool), experts_(pool), heads_(pool), head_(pool) {}

void Executor::run(Program& program, const KvCache& cache, const StepPlan& plan, StepResult& result,
                   const std::atomic<bool>& cancelled) {
    const auto start = std::chrono::steady_clock::now();
    // However this rank leaves the step, the others may not wait for it.
    struct Leaving {
        Rank& rank;
        bool is_done = false;
        ~Leaving() {
            if (!is_done) rank.fail();
        }
    } leaving{program.rank()};
    program.rank().begin_step();
    result.sent.clear();
    Step step{*this, program, cache, plan, plan.num_tokens, result};
    attention_.begin(plan.layout());
    adapters_.begin(plan);
    states_.begin(plan.layout(), plan.recurrent, cache.states());
    for (RopeTable& rope : program.ropes()) {
        rope.fill(plan.positions.data(), plan.axes.empty() ? nullptr : plan.axes.data(), plan.num_tokens, pool_);
    }
    encoded_.span = kNoSpan;
    OpClock clock(plan, result);
    const size_t num_ops = program.ops().size();
    const size_t end = num_ops * static_cast<size_t>(plan.part + 1) / static_cast<size_t>(plan.num_parts);
    for (size_t i = num_ops * static_cast<size_t>(plan.part) / static_cast<size_t>(plan.num_parts); i < end; i++) {
        const Op& op = program.ops()[i];
        if (cancelled.load(std::memory_order_relaxed)) return;
        if (writes(op, encoded_.span.buffer) || std::holds_alternative<GatherOp>(op)) encoded_.span = kNoSpan;
        if (step.num_rows > 0) std::visit(step, op);
        if (clock.is_wanted()) clock.end(kind_of(op));
    }
    head_.run(program.head(), program.rows(program.hidden()), program.hidden().width, step.gathered, plan, result,
              workspace_, program.rank(), cancelled);
    if (clock.is_wanted()) clock.end(OpKind::head);
    leaving.is_done = !cancelled.load(std::memory_order_relaxed);
    result.exchanged_bytes = program.rank().bytes_received();
    result.exchange_ms = program.rank().milliseconds();
    result.compute_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace octavo
