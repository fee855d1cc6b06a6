#pragma once
#include <memory>

#include "../../core/aligned_memory.h"
#include "float_kernels.h"
#include "../matrix.h"
#include "../pack_progress.h"
#include "../source.h"
#include "../tiles.h"

namespace octavo {

class InPlaceMatrix;

/// Panels of f32, f16 or bf16, see FloatPanels.
class FloatMatrix final : public Matrix {
public:
    /// Repacks in parallel; throws as Matrix::pack does.
    FloatMatrix(const SourceStack& stack, ThreadPool& pool);
    /// Takes panels that are already packed.
    FloatMatrix(WeightType type, int64_t rows, int64_t cols, AlignedMemory packed);
    /// Starts without panels: products use the weights in place until pack_more has packed them.
    explicit FloatMatrix(std::unique_ptr<const InPlaceMatrix> in_place);
    ~FloatMatrix() override;

    const uint8_t* packed() const override { return progress_.is_complete() ? memory_.data() : nullptr; }
    bool reads_files() const override { return in_place_ != nullptr; }
    size_t pack_more(size_t bytes, ThreadPool& pool) override;

    int64_t rows() const override { return rows_; }
    int64_t cols() const override { return cols_; }
    size_t bytes() const override { return static_cast<size_t>(panels() * panel_bytes()); }
    RowEncoding encoding() const override;
    size_t encoded_bytes(int64_t m) const override;
    /// Rows lie block of columns by block of columns: all rows of block 0, then of block 1.
    void encode(const float* x, int64_t row, int64_t m, void* rows) const override;
    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

private:
    int64_t panels() const;
    /// Columns as packed: even for bf16.
    int64_t packed_cols() const;
    int64_t column_bytes() const;
    int64_t panel_bytes() const { return packed_cols() * column_bytes(); }
    /// Sums of one tile of m encoded rows, as run_tiles has them.
    void multiply_tile(const uint8_t* rows, int64_t m, const Tile& tile, float* sums, int64_t stride) const;
    /// Bytes of an encoded activation.
    int64_t activation_bytes() const { return type_ == WeightType::bf16 ? 2 : 4; }

    WeightType type_;
    int64_t rows_;
    int64_t cols_;
    AlignedMemory memory_;
    /// Null once all is packed.
    std::unique_ptr<const InPlaceMatrix> in_place_;
    /// In panels.
    PackProgress progress_{true};
    const FloatKernelTable& table_;
    FloatMultiply multiply_;
};

}  // namespace octavo
