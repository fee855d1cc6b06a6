#include "expert_runner.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "../ops/rows.h"

namespace octavo {

namespace {

/// Slots of the runner's memory.
constexpr int kEncoded = 0;
constexpr int kGateUp = 1;
constexpr int kActivated = 2;
constexpr int kOutputs = 3;
constexpr int kWeighed = 4;

/// Activations that exist at a time; a longer prompt takes several passes over the experts.
constexpr int64_t kActivationBytes = int64_t{128} << 20;
/// Shares for each thread, so that the last ones end together.
constexpr int64_t kSharesPerThread = 4;
/// Rows whose products take no longer than reading the weights does.
constexpr int64_t kRowsWithinRead = 8;

int64_t inner_width(const ExpertsOp& op) { return op.experts.front().down->cols(); }

/// Whether every expert's matrices allow gate and up to be multiplied side by side.
bool gates_within(const ExpertsOp& op) {
    return !op.is_plain && std::all_of(op.experts.begin(), op.experts.end(),
                       [](const ExpertWeights& expert) { return expert.up == nullptr && expert.gate->can_gate(); });
}

}  // namespace

ExpertRunner::ExpertRunner(ThreadPool& pool) : pool_(pool) {
    for (int i = 0; i < pool.size(); ++i) {
        lanes_.push_back(std::make_unique<Lane>());
        // So that the first share that a thread happens to take finds the slot there.
        lanes_.back()->workspace.get(Workspace::kScratchSlot, 0);
    }
}

void ExpertRunner::run(const ExpertsOp& op, Rows in, Rows scores, Rows out, int64_t num_rows, Rank& rank) {
    const int64_t inner = inner_width(op);
    // This rank's part of them.
    const RankPart part = op.is_split ? rank.part_of(inner) : RankPart{0, inner};
    const bool gated = gates_within(op);
    const int64_t choice_bytes = (3 * inner + op.in.width + op.out.width) * static_cast<int64_t>(sizeof(float));
    const int64_t rows_at_once = std::max<int64_t>(1, kActivationBytes / (choice_bytes * op.rule.top_k));
    const auto activate = [&](const float* gate, const float* up, float* to, int64_t count) {
        op_kernels().gated_activation(op.activation, gate, up, to, count);
    };
    const GateFunction gate(activate);
    // A run that found no memory may have left some.
    products_.clear();
    products_.reserve(2 * op.experts.size());

    for (int64_t first = 0; first < num_rows; first += rows_at_once) {
        const int64_t count = std::min(rows_at_once, num_rows - first);
        const int64_t num_choices = count * op.rule.top_k;
        const auto floats = [&](int slot, int64_t width) {
            return static_cast<float*>(memory_.get(slot, static_cast<size_t>(num_choices * width) * sizeof(float)));
        };
        routing_.choose({scores.row(first), scores.stride}, count, static_cast<int64_t>(op.experts.size()), op.rule,
                        op.selection_bias ? op.selection_bias->data() : nullptr,
                        op.expert_scales ? op.expert_scales->data() : nullptr, pool_);
        float* activated = floats(kActivated, inner);
        const float* weighed = op.weighs_input ? weigh({in.row(first), in.stride}, floats(kWeighed, op.in.width), op.in.width, count) : nullptr;
        const auto input = [&](int64_t choice) -> const float* {
            return weighed != nullptr ? weighed + choice * op.in.width : in.row(first + routing_.row_of(choice));
        };
        if (gated || op.is_plain) {
            for (size_t i = 0; i < op.experts.size(); ++i) {
                add_product(i, *op.experts[i].gate, op.experts[i].gate_bias.get(), activated + part.first, inner);
            }
            multiply(input, inner, gated ? &gate : nullptr);
            if (op.is_plain) activate_plain(op, activated + part.first, part.width, num_choices);
        } else {
            float* gate_up = floats(kGateUp, 2 * part.width);
            for (size_t i = 0; i < op.experts.size(); ++i) {
                const ExpertWeights& expert = op.experts[i];
                add_product(i, *expert.gate, expert.gate_bias.get(), gate_up, 2 * part.width);
                if (expert.up != nullptr) add_product(i, *expert.up, expert.up_bias.get(), gate_up + part.width, 2 * part.width);
            }
            multiply(input, 2 * part.width, nullptr);
            for_rows(pool_, num_choices, 2 * part.width, [&](int64_t begin, int64_t end) {
                for (int64_t choice = begin; choice < end; ++choice) {
                    const float* row = gate_up + choice * 2 * part.width;
                    activate(row, row + part.width, activated + choice * inner + part.first, part.width);
                }
            });
        }
        if (op.is_split) rank.exchange({activated, inner}, num_choices, inner, ExchangeKind::parts, pool_);
        float* outputs = floats(kOutputs, op.out.width);
        for (size_t i = 0; i < op.experts.size(); ++i) {
            add_product(i, *op.experts[i].down, op.experts[i].down_bias.get(), outputs, op.out.width);
        }
        multiply([&](int64_t choice) -> const float* { return activated + choice * inner; }, op.out.width, nullptr);
        combine(op, outputs, {out.row(first), out.stride}, count);
    }
}

const float* ExpertRunner::weigh(Rows in, float* weighed, int64_t width, int64_t num_rows) {
    for_rows(pool_, num_rows, routing_.per_row() * width / 4, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            for (int64_t k = 0; k < routing_.per_row(); ++k) {
                float* to = weighed + routing_.choice(row, k) * width;
                for (int64_t i = 0; i < width; ++i) to[i] = routing_.weight(row, k) * in.row(row)[i];
            }
        }
    });
    return weighed;
}

void ExpertRunner::activate_plain(const ExpertsOp& op, float* activated, int64_t width, int64_t num_choices) {
    const int64_t inner = inner_width(op);
    ones_.assign(static_cast<size_t>(width), 1.0f);
    for_rows(pool_, num_choices, width, [&](int64_t begin, int64_t end) {
        for (int64_t choice = begin; choice < end; ++choice) {
            float* row = activated + choice * inner;
            op_kernels().gated_activation(op.activation, row, ones_.data(), row, width);
        }
    });
}

void ExpertRunner::add_product(size_t expert, const Matrix& matrix, const Vector* bias, float* y, int64_t ldy) {
    const int64_t first = routing_.first(static_cast<int64_t>(expert));
    const int64_t count = routing_.count(static_cast<int64_t>(expert));
    if (count == 0) return;
    products_.push_back({&matrix, bias, first, count, y + first * ldy, 0, 0, 0, 1});
}

void ExpertRunner::multiply(const RowOf& row_of, int64_t ldy, const GateFunction* gate) {
    size_t encoded_bytes = 0;
    int64_t num_rows = 0;
    for (Product& product : products_) {
        product.encoded_at = encoded_bytes;
        encoded_bytes += (product.matrix->encoded_bytes(product.count) + 63) / 64 * 64;
        product.rows_before = num_rows;
        num_rows += product.count;
    }
    uint8_t* encoded = static_cast<uint8_t*>(memory_.get(kEncoded, encoded_bytes));
    encode(row_of, encoded, num_rows);

    const int64_t num_shares = cut_into_shares();
    std::atomic<bool> failed{false};
    pool_.parallel_for(num_shares, 1, [&](int64_t begin, int64_t end, int thread) {
        Lane& lane = *lanes_[static_cast<size_t>(thread)];
        for (int64_t share = begin; share < end; ++share) {
            const Product& product = *std::prev(std::upper_bound(
                products_.begin(), products_.end(), share, [](int64_t at, const Product& one) { return at < one.shares_before; }));
            const LinearOutput output{product.y, ldy, product.bias != nullptr ? product.bias->data() : nullptr, gate,
                                      {share - product.shares_before, product.shares}};
            try {
                product.matrix->multiply(encoded + product.encoded_at, product.count, output, lane.workspace, lane.alone);
            } catch (const std::bad_alloc&) {
                failed.store(true, std::memory_order_relaxed);
            }
        }
    });
    products_.clear();
    if (failed.load(std::memory_order_relaxed)) throw std::bad_alloc();
}

void ExpertRunner::encode(const RowOf& row_of, uint8_t* encoded, int64_t num_rows) {
    for_rows(pool_, num_rows, products_.front().matrix->cols() / 4, [&](int64_t begin, int64_t end) {
        auto product = std::prev(std::upper_bound(products_.begin(), products_.end(), begin,
                                                  [](int64_t row, const Product& one) { return row < one.rows_before; }));
        for (int64_t row = begin; row < end; ++row) {
            while (row >= product->rows_before + product->count) ++product;
            const int64_t index = row - product->rows_before;
            product->matrix->encode(row_of(product->first_choice + index), index, product->count, encoded + product->encoded_at);
        }
    });
}

int64_t ExpertRunner::cut_into_shares() {
    const auto work = [](const Product& product) {
        const double rows = static_cast<double>(std::max(product.count, kRowsWithinRead));
        return rows * static_cast<double>(product.matrix->rows() * product.matrix->cols());
    };
    // The longest first, so that none is left alone at the end.
    std::sort(products_.begin(), products_.end(), [&](const Product& a, const Product& b) { return work(a) > work(b); });
    double total = 0.0;
    for (const Product& product : products_) total += work(product);
    const double wanted = pool_.size() == 1 ? 0.0 : static_cast<double>(kSharesPerThread * pool_.size());
    int64_t num_shares = 0;
    for (Product& product : products_) {
        product.shares = std::max<int64_t>(1, static_cast<int64_t>(work(product) / total * wanted));
        product.shares_before = num_shares;
        num_shares += product.shares;
    }
    return num_shares;
}

void ExpertRunner::combine(const ExpertsOp& op, const float* outputs, Rows out, int64_t num_rows) {
    const int64_t width = op.out.width;
    for_rows(pool_, num_rows, op.rule.top_k * width / 4, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            float* sum = out.row(row);
            std::memset(sum, 0, static_cast<size_t>(width) * sizeof(float));
            for (int64_t k = 0; k < op.rule.top_k; ++k) {
                const float weight = op.weighs_input ? 1.0f : routing_.weight(row, k);
                op_kernels().add_scaled(outputs + routing_.choice(row, k) * width, weight, sum, width);
            }
        }
    });
}

}  // namespace octavo
