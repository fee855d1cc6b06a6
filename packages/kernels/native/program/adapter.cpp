#include "adapter.h"

#include <algorithm>
#include <cstddef>

#include "../ops/kernels.h"
#include "../ops/rows.h"

namespace octavo {

namespace {

/// Rows that are multiplied at a time, which bounds the memory of what they are given.
constexpr int64_t rows_at_once = 128;

int64_t stride_of(int64_t width) { return (width + 15) / 16 * 16 + 16; }

/// `count` floats that survive until the next call for the same memory.
float* grown(std::vector<float>& memory, int64_t count) {
    if (memory.size() < static_cast<size_t>(count)) memory.resize(static_cast<size_t>(count));
    return memory.data();
}

}  // namespace

void AdapterRunner::begin(const StepPlan& plan) {
    num_groups_ = plan.adapters.size();
    if (groups_.size() < num_groups_) groups_.resize(num_groups_);
    for (size_t i = 0; i < num_groups_; i++) {
        groups_[i].adapter = plan.adapters[i].get();
        groups_[i].rows.clear();
    }
    if (num_groups_ == 0) return;
    for (size_t sequence = 0; sequence < static_cast<size_t>(plan.num_sequences); sequence++) {
        const int32_t adapter = plan.sequence_adapters[sequence];
        if (adapter < 0) continue;
        std::vector<int32_t>& rows = groups_[static_cast<size_t>(adapter)].rows;
        for (int32_t row = plan.query_starts[sequence]; row < plan.query_starts[sequence + 1]; row++) rows.push_back(row);
    }
}

void AdapterRunner::gather(const StepPlan& plan) {
    if (num_groups_ == 0) return;
    for (size_t i = 0; i < num_groups_; i++) groups_[i].rows.clear();
    size_t sequence = 0;
    for (size_t output = 0; output < plan.outputs.size(); output++) {
        while (plan.outputs[output].token >= plan.query_starts[sequence + 1]) sequence++;
        const int32_t adapter = plan.sequence_adapters[sequence];
        if (adapter >= 0) groups_[static_cast<size_t>(adapter)].rows.push_back(static_cast<int32_t>(output));
    }
}

bool AdapterRunner::touches(int32_t site) const {
    const auto end = groups_.begin() + static_cast<std::ptrdiff_t>(num_groups_);
    return std::any_of(groups_.begin(), end,
                       [&](const Group& group) { return !group.rows.empty() && group.adapter->at(site) != nullptr; });
}

void AdapterRunner::add(int32_t site, Rows in, Rows out) {
    for (size_t i = 0; i < num_groups_; i++) {
        const Group& group = groups_[i];
        const AdapterSite* found = group.adapter->at(site);
        if (found == nullptr) continue;
        const int64_t num_rows = static_cast<int64_t>(group.rows.size());
        for (int64_t first = 0; first < num_rows; first += rows_at_once) {
            add_rows(*found, group.rows.data() + first, std::min(rows_at_once, num_rows - first), in, out);
        }
    }
}

void AdapterRunner::add_rows(const AdapterSite& site, const int32_t* row_indices, int64_t m, Rows in, Rows out) {
    const OpKernels& kernels = op_kernels();
    const Matrix& down = *site.down;
    void* encoded = workspace_.get(Workspace::kRowsSlot, down.encoded_bytes(m));
    for_rows(pool_, m, down.cols() / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) down.encode(in.row(row_indices[i]), i, m, encoded);
    });
    const int64_t low_stride = stride_of(down.rows());
    float* low = grown(low_, m * low_stride);
    down.multiply(encoded, m, {low, low_stride, nullptr, nullptr}, workspace_, pool_);

    for (const AdapterPart& part : site.parts) {
        const Matrix& up = *part.up;
        void* rows = workspace_.get(Workspace::kRowsSlot, up.encoded_bytes(m));
        for (int64_t i = 0; i < m; i++) {
            float* x = low + i * low_stride + part.rank_begin;
            if (part.scale != 1.0f) kernels.scale(x, part.scale, up.cols());
            up.encode(x, i, m, rows);
        }
        const int64_t stride = stride_of(up.rows());
        float* added = grown(added_, m * stride);
        up.multiply(rows, m, {added, stride, nullptr, nullptr}, workspace_, pool_);
        for_rows(pool_, m, up.rows() / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) kernels.add(added + i * stride, out.row(row_indices[i]) + part.column, up.rows());
        });
    }
}

}  // namespace octavo
