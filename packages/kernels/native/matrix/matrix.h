#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/mapped_file.h"
#include "../core/thread_pool.h"

namespace octavo {

enum class WeightType { f32, f16, bf16, q4_0, q5_0, q8_0, q4_k, q5_k, q6_k, int8, int4 };

/// A matrix [rows, cols] as it lies on disk, row-major; `scales`, `zeros` and `group` as backend.ts says.
/// Pointers need no alignment.
struct MatrixSource {
    WeightType type;
    int64_t rows;
    int64_t cols;
    const uint8_t* values;
    const uint8_t* scales;  // f32, unaligned; null unless int8 or int4
    const uint8_t* zeros;   // f32, unaligned; null unless int4 with zero points
    int64_t group;
    std::string name;
    /// The mapping that `values` lie in, whose pages need not stay resident once packed; null for other memory.
    const MappedFile* file = nullptr;
    /// Stored column j multiplies input column_order[j]; empty when in order.
    std::vector<int32_t> column_order = {};
};

/// Scratch that grows to the largest use and is kept, so that steps do not allocate.
class Workspace {
public:
    /// Slots below this number belong to Matrix::linear.
    static constexpr int kFirstFreeSlot = 4;

    /// 64-byte aligned, at least `bytes` long; contents undefined. Slots are independent buffers.
    void* get(int slot, size_t bytes);

    Workspace() = default;
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

private:
    std::vector<std::pair<void*, size_t>> slots_;
};

/// Weights repacked for the active instruction set.
class Matrix {
public:
    /// Stacks the sources along rows; they share type, cols and group. Throws std::runtime_error naming the tensor when a
    /// weight or a scale is not finite, or when the shape does not suit the type.
    static std::unique_ptr<Matrix> pack(const std::vector<MatrixSource>& sources, ThreadPool& pool);
    virtual ~Matrix() = default;

    virtual int64_t rows() const = 0;
    virtual int64_t cols() const = 0;
    virtual size_t bytes() const = 0;

    /// y[m, rows] = x[m, cols] * W^T (+ bias[rows]). ldx and ldy are row strides in floats.
    /// Row i of y depends on row i of x alone, bit for bit, whatever m and the number of threads are.
    virtual void linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias,
                        Workspace& workspace, ThreadPool& pool) const = 0;

    /// Dequantised row r (embedding lookup).
    virtual void row(int64_t r, float* out) const = 0;
};

}  // namespace octavo
