#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/mapped_file.h"
#include "../core/function_ref.h"
#include "../core/thread_pool.h"
#include "weight_types.h"

namespace octavo {

/// A matrix [rows, cols] as it lies on disk, row-major; `scales`, `zeros` and `group` as backend.ts says.
/// Pointers need no alignment.
struct MatrixSource {
    WeightType type;
    int64_t rows;
    int64_t cols;
    const uint8_t* values;
    const uint8_t* scales;  // f32, unaligned; null for types that keep them among the values
    const uint8_t* zeros;   // f32, unaligned; null unless int2, int3, int4, uint8 or table4 with zero points
    int64_t group;
    std::string name;
    /// The mapping that `values` lie in, whose pages need not stay resident once packed; null for other memory.
    std::shared_ptr<const MappedFile> file = nullptr;
    /// Stored column j multiplies input column_order[j]; empty when in order.
    std::vector<int32_t> column_order = {};
    /// table4 only: the values of the 16 codes.
    std::vector<float> table = {};
    /// Rows of scales and zeros, which row r takes from row r % scale_rows; 0: as many as rows. f8_e4m3, uint8 and table4 only.
    int64_t scale_rows = 0;
};

/// Scratch that grows to the largest use and is kept, so that steps do not allocate.
class Workspace {
public:
    /// For encoded rows.
    static constexpr int kRowsSlot = 0;
    /// For Matrix::multiply.
    static constexpr int kScratchSlot = 1;

    /// 64-byte aligned, at least `bytes` long; contents undefined. Slots are independent buffers.
    void* get(int slot, size_t bytes);

    Workspace() = default;
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

private:
    std::vector<std::pair<void*, size_t>> slots_;
};

/// The form in which a matrix multiplies activations. Rows encoded for one matrix serve every other with an equal encoding.
struct RowEncoding {
    /// `rounded`: f32 that bf16 holds.
    enum class Kind { plain, rounded, bf16, int8 };
    Kind kind;
    /// int8: which corrections are kept with the codes, and for how many groups.
    int corrections;
    int64_t cols;
    /// The permutation that columns were put through first; null when in order.
    const void* order;

    bool operator==(const RowEncoding& other) const {
        return kind == other.kind && corrections == other.corrections && cols == other.cols && order == other.order;
    }
};

/// out[i] = activation(gate[i]) * up[i]; `out` may be `gate`.
using GateFunction = FunctionRef<void(const float* gate, const float* up, float* out, int64_t count)>;

/// Where products go: y[m, rows] (+ bias[rows]), ldy floats from row to row. With a gate, the matrix is a stack of two halves,
/// gate above up, and y[m, rows / 2] = gate(first half, second half).
struct LinearOutput {
    float* y;
    int64_t ldy;
    const float* bias;
    const GateFunction* gate;
    /// The part of the product to compute, one of `count` of about the same work; together they write all of y.
    struct Share {
        int64_t index;
        int64_t count;
    };
    Share share{0, 1};
};

/// Weights as the active instruction set multiplies them.
class Matrix {
public:
    /// Stacks the sources along rows; they share type, cols and group. Throws std::runtime_error naming the tensor when a
    /// weight or a scale is not finite, or when the shape does not suit the type.
    static std::unique_ptr<Matrix> pack(const std::vector<MatrixSource>& sources, ThreadPool& pool);
    /// As pack, but a matrix that can be multiplied as it lies in its mapped files is left there, see InPlaceMatrix.
    static std::unique_ptr<Matrix> in_place_or_packed(const std::vector<MatrixSource>& sources, ThreadPool& pool);
    /// As pack, but a matrix that can be multiplied out of its mapped files is only checked here and packed later, by pack_more. Its
    /// products have the same bits before, during and after packing.
    static std::unique_ptr<Matrix> pack_later(const std::vector<MatrixSource>& sources, ThreadPool& pool);
    virtual ~Matrix() = default;

    virtual int64_t rows() const = 0;
    virtual int64_t cols() const = 0;
    /// The packed bytes, bytes() of them; null when they do not describe the whole matrix or packing is not finished. May be called
    /// from any thread.
    virtual const uint8_t* packed() const { return nullptr; }
    virtual size_t bytes() const = 0;
    /// Whether the sources' files are still read when the matrix is multiplied.
    virtual bool reads_files() const { return false; }
    /// Packs about this many more bytes; not to be called during a product. Returns how many were packed, 0 when nothing is left.
    virtual size_t pack_more(size_t, ThreadPool&) { return 0; }

    virtual RowEncoding encoding() const = 0;
    /// Bytes of m encoded rows; they start on a cache line.
    virtual size_t encoded_bytes(int64_t m) const = 0;
    /// Encodes x[cols] as row `row` of m. Rows may be encoded in any order, on any thread.
    virtual void encode(const float* x, int64_t row, int64_t m, void* rows) const = 0;
    void encode_all(const float* x, int64_t ldx, int64_t m, void* rows, ThreadPool& pool) const;

    /// Output row i depends on encoded row i alone, bit for bit, whatever m, the number of threads and the gate are.
    virtual void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                          ThreadPool& pool) const = 0;
    /// Whether the halves that a gate needs can be multiplied side by side.
    bool can_gate() const;

    /// y[m, rows] = x[m, cols] * W^T (+ bias[rows]), encoded and multiplied. ldx and ldy are row strides in floats.
    void linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias, Workspace& workspace,
                ThreadPool& pool) const;

    /// Dequantised row r (embedding lookup).
    virtual void row(int64_t r, float* out) const = 0;
};

}  // namespace octavo
