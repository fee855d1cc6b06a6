#include "head_products.h"

#include <atomic>
#include <cstring>
#include <new>

namespace octavo {

HeadProducts::HeadProducts(ThreadPool& pool) : pool_(pool) {
    for (int i = 0; i < pool.size(); ++i) lanes_.push_back(std::make_unique<Lane>());
}

void HeadProducts::run(const HeadLinearOp& op, Rows in, Rows out, int64_t num_rows) {
    const int64_t num_heads = static_cast<int64_t>(op.weights.size());
    const int64_t from_width = op.in.width / num_heads;
    const int64_t to_width = op.out.width / num_heads;
    std::atomic<bool> failed{false};
    pool_.parallel_for(num_heads, 1, [&](int64_t begin, int64_t end, int thread) {
        Lane& lane = *lanes_[static_cast<size_t>(thread)];
        for (int64_t head = begin; head < end; ++head) {
            const Matrix& weight = *op.weights[static_cast<size_t>(head)];
            const float* from = in.data + head * from_width;
            float* to = out.data + head * to_width;
            try {
                weight.linear(from, in.stride, num_rows, to + op.passed, out.stride, nullptr, lane.workspace, lane.alone);
            } catch (const std::bad_alloc&) {
                failed.store(true, std::memory_order_relaxed);
            }
            if (op.passed == 0) continue;
            for (int64_t row = 0; row < num_rows; ++row) {
                std::memcpy(to + row * out.stride, from + row * in.stride + weight.cols(), static_cast<size_t>(op.passed) * sizeof(float));
            }
        }
    });
    if (failed.load(std::memory_order_relaxed)) throw std::bad_alloc();
}

}  // namespace octavo
