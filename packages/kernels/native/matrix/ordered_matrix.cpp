#include "ordered_matrix.h"

#include <algorithm>
#include <utility>

namespace octavo {

namespace {

/// Of Matrix::linear's slots, the last: the packed matrix uses the ones before.
constexpr int kGatheredSlot = Workspace::kFirstFreeSlot - 1;
/// Below this many activations, gathering them is not worth waking a thread for.
constexpr int64_t kSerialActivations = 16384;

class OrderedMatrix final : public Matrix {
public:
    OrderedMatrix(std::unique_ptr<Matrix> packed, const std::vector<int32_t>& order)
        : packed_(std::move(packed)), order_(order) {}

    int64_t rows() const override { return packed_->rows(); }
    int64_t cols() const override { return packed_->cols(); }
    size_t bytes() const override { return packed_->bytes() + order_.size() * sizeof(int32_t); }

    void linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias, Workspace& workspace,
                ThreadPool& pool) const override {
        if (m <= 0) return;
        const int64_t count = cols();
        float* gathered = static_cast<float*>(workspace.get(kGatheredSlot, static_cast<size_t>(m * count) * sizeof(float)));
        const auto gather = [&](int64_t begin, int64_t end, int) {
            for (int64_t row = begin; row < end; ++row) {
                const float* from = x + row * ldx;
                float* to = gathered + row * count;
                for (int64_t j = 0; j < count; ++j) to[j] = from[order_[static_cast<size_t>(j)]];
            }
        };
        if (m * count <= kSerialActivations) {
            gather(0, m, 0);
        } else {
            pool.parallel_for(m, std::max<int64_t>(1, kSerialActivations / 2 / count), gather);
        }
        packed_->linear(gathered, count, m, y, ldy, bias, workspace, pool);
    }

    void row(int64_t r, float* out) const override {
        std::vector<float> values(order_.size());
        packed_->row(r, values.data());
        for (size_t j = 0; j < order_.size(); ++j) out[order_[j]] = values[j];
    }

private:
    std::unique_ptr<Matrix> packed_;
    std::vector<int32_t> order_;
};

}  // namespace

std::unique_ptr<Matrix> in_column_order(std::unique_ptr<Matrix> packed, const std::vector<int32_t>& order) {
    if (order.empty()) return packed;
    return std::make_unique<OrderedMatrix>(std::move(packed), order);
}

}  // namespace octavo
