#include "ordered_matrix.h"

#include <utility>

namespace octavo {

namespace {

class OrderedMatrix final : public Matrix {
public:
    OrderedMatrix(std::unique_ptr<Matrix> packed, const std::vector<int32_t>& order)
        : packed_(std::move(packed)), order_(order) {}

    int64_t rows() const override { return packed_->rows(); }
    int64_t cols() const override { return packed_->cols(); }
    size_t bytes() const override { return packed_->bytes() + order_.size() * sizeof(int32_t); }

    RowEncoding encoding() const override {
        RowEncoding encoding = packed_->encoding();
        encoding.order = order_.data();
        return encoding;
    }
    size_t encoded_bytes(int64_t m) const override { return packed_->encoded_bytes(m); }

    void encode(const float* x, int64_t row, int64_t m, void* rows) const override {
        // Kept by the thread, so that steps do not allocate.
        thread_local std::vector<float> gathered;
        if (gathered.size() < order_.size()) gathered.resize(order_.size());
        for (size_t j = 0; j < order_.size(); ++j) gathered[j] = x[order_[j]];
        packed_->encode(gathered.data(), row, m, rows);
    }

    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override {
        packed_->multiply(rows, m, output, workspace, pool);
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
