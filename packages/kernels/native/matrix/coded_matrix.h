#pragma once
#include "../core/aligned_memory.h"
#include "coded_kernels.h"
#include "float_kernels.h"
#include "layout.h"
#include "matrix.h"
#include "source.h"

namespace octavo {

/// Weights whose codes stand for values that integers with a scale cannot give: E4M3, tables of 16 floats (NF4, MXFP4, ...), bytes
/// with fractional zero points. They stay packed as codes; a block of columns at a time is decoded to f32 and multiplied by the
/// kernels of f32 matrices, in their order of summation. Activations are not rounded.
class CodedMatrix final : public Matrix {
public:
    /// Repacks in parallel; throws as Matrix::pack does.
    CodedMatrix(const SourceStack& stack, ThreadPool& pool);

    int64_t rows() const override { return rows_; }
    int64_t cols() const override { return cols_; }
    size_t bytes() const override { return codes_.size() + meta_.size(); }
    RowEncoding encoding() const override { return {RowEncoding::Kind::plain, 0, cols_, nullptr}; }
    size_t encoded_bytes(int64_t m) const override { return static_cast<size_t>(m * cols_) * sizeof(float); }
    /// As FloatMatrix encodes rows for f32: all rows' first block of columns, then their second.
    void encode(const float* x, int64_t row, int64_t m, void* rows) const override;
    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

private:
    int64_t panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
    int64_t groups() const { return (cols_ + group_ - 1) / group_; }
    /// Of one panel.
    int64_t code_bytes() const;
    uint8_t* codes(int64_t panel) const { return codes_.data() + panel * code_bytes(); }
    /// Scales [16] and zeros [16] of each group of one panel; panels beyond the first scale_rows share those of others.
    float* meta(int64_t panel) const {
        return reinterpret_cast<float*>(meta_.data()) + panel % meta_panels_ * groups() * 2 * kPanelRows;
    }
    void pack_meta(const SourceStack& stack, int64_t panel, FiniteCheck& check);
    void pack_codes(const SourceStack& stack, int64_t panel, FiniteCheck& check);
    /// Columns [first, first + count) of one panel as [count][16] floats.
    void decode(int64_t panel, int64_t first, int64_t count, float* out) const;

    WeightType type_;
    int64_t rows_;
    int64_t cols_;
    int64_t group_;
    int64_t meta_panels_;
    float table_[16] = {};
    AlignedMemory codes_;
    AlignedMemory meta_;
    const FloatKernelTable& kernels_;
    DecodeCodes decode_;
};

}  // namespace octavo
