#pragma once
#include "../../core/aligned_memory.h"
#include "codebook_kernels.h"
#include "../float/float_kernels.h"
#include "../layout.h"
#include "../matrix.h"
#include "../source.h"
#include "../tiles.h"

namespace octavo {

/// Weights with a codebook, whose values integers with a scale cannot express: E4M3, tables of 16 floats (NF4, FP4), and scales that
/// change from column to column. They stay packed as codes; a block of columns at a time is decoded to bf16 and multiplied by rows
/// rounded to bf16, as bf16 matrices are, in their order of summation.
///
/// Where groups are wide and have no zero points, codes are decoded to their unscaled values and each group's partial sum is scaled:
/// E4M3 stays exact, and so do tables that some factor makes exact in bf16. Elsewhere scaled weights are rounded to bf16.
class CodebookMatrix final : public Matrix {
public:
    /// Repacks in parallel; throws as Matrix::pack does.
    CodebookMatrix(const SourceStack& stack, ThreadPool& pool);

    int64_t rows() const override { return rows_; }
    int64_t cols() const override { return cols_; }
    size_t bytes() const override { return codes_.size() + meta_.size(); }
    RowEncoding encoding() const override;
    size_t encoded_bytes(int64_t m) const override;
    /// As FloatMatrix encodes rows: all rows' first block of columns, then their second.
    void encode(const float* x, int64_t row, int64_t m, void* rows) const override;
    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

private:
    int64_t panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
    int64_t pairs() const { return (cols_ + 1) / 2; }
    int64_t groups() const { return (cols_ + group_ - 1) / group_; }
    /// Columns that tiles and rows have: even where they hold pairs.
    int64_t tile_cols() const { return kernels_.pairs ? 2 * pairs() : cols_; }
    /// Bytes of an encoded activation and of a decoded weight.
    int64_t element_bytes() const { return kernels_.pairs ? 2 : 4; }
    int64_t pair_bytes() const { return codebook_pair_bytes(type_ == WeightType::table4); }
    uint8_t* codes(int64_t panel) const { return codes_.data() + panel * pairs() * pair_bytes(); }
    /// Scales of one panel: [group][16 scales], where weights are decoded [group][16 scales, 16 zeros]. Panels beyond the first scale_rows
    /// share those of others.
    float* meta(int64_t panel) const {
        return reinterpret_cast<float*>(meta_.data()) + panel % meta_panels_ * groups() * group_floats();
    }
    int64_t group_floats() const { return (decodes_weights_ ? 2 : 1) * kPanelRows; }
    float value_of(int64_t panel, int64_t column, int64_t lane) const;

    void round_table();
    void pack_meta(const SourceStack& stack, int64_t panel, FiniteCheck& check);
    void pack_codes(const SourceStack& stack, int64_t panel, FiniteCheck& check);
    /// Neighbouring panels and columns that one tile of products takes at a time.
    struct Block {
        /// Encoded, all m of them.
        const uint8_t* rows;
        int64_t m;
        Tile tile;
        int64_t panel;
        int64_t num_panels;
        int64_t column;
        /// Room for num_panels decoded panels.
        uint8_t* decoded;
    };
    void multiply_block(const Block& block, float* sums, int64_t stride) const;
    /// Where tiles hold columns one by one, an odd last one is decoded with a neighbour that is not used.
    int64_t decoded_stride() const { return std::min<int64_t>(kFloatBlock, 2 * pairs()) * kPanelRows * element_bytes(); }
    /// Columns [first, first + count) of one panel, `first` a multiple of kFloatBlock.
    void decode(int64_t panel, int64_t first, int64_t count, uint8_t* out) const;

    WeightType type_;
    int64_t rows_;
    int64_t cols_;
    int64_t group_;
    bool decodes_weights_;
    int64_t meta_panels_;
    float table_[16] = {};
    /// table_ times a factor, rounded to bf16, and what undoes the factor.
    float rounded_table_[16] = {};
    float table_unit_ = 1.0f;
    AlignedMemory codes_;
    AlignedMemory meta_;
    const CodebookKernelTable& kernels_;
    const FloatKernelTable& products_;
};

}  // namespace octavo
