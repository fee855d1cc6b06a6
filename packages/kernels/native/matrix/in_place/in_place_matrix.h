#pragma once
#include <memory>
#include <vector>

#include "../../core/aligned_memory.h"
#include "../float/float_kernels.h"
#include "in_place_kernels.h"
#include "../matrix.h"
#include "../source.h"
#include "../tiles.h"

namespace octavo {

/// bf16 weights read where they lie in their files, which stay mapped for as long as the matrix lives: nothing is copied, and
/// processes that serve the same files share the memory. Products are those of FloatMatrix, bit for bit.
class InPlaceMatrix final : public Matrix {
public:
    /// Whether sources of these types and shapes can be read in place on the path of KernelKind::bf16.
    static bool suits(const std::vector<MatrixSource>& sources);

    /// Brings the files' pages into memory and reads them once; throws as Matrix::pack does.
    InPlaceMatrix(const SourceStack& stack, ThreadPool& pool);

    int64_t rows() const override { return rows_; }
    int64_t cols() const override { return cols_; }
    /// Those of the files.
    size_t bytes() const override { return static_cast<size_t>(rows_ * row_bytes()); }
    bool reads_files() const override { return true; }
    RowEncoding encoding() const override { return {RowEncoding::Kind::bf16, 0, cols_, nullptr}; }
    size_t encoded_bytes(int64_t m) const override { return static_cast<size_t>(m * row_bytes()); }
    /// As FloatMatrix does.
    void encode(const float* x, int64_t row, int64_t m, void* rows) const override;
    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

    /// Leaves a tile's sums as run_tiles has them, or returns false.
    using OtherTiles = FunctionRef<bool(const Tile& tile, float* sums, int64_t stride)>;
    /// As multiply, but for the tiles that `others` computes.
    void multiply_beside(const OtherTiles& others, const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                         ThreadPool& pool) const;
    /// Copies panels [begin, end) to `out` as FloatMatrix has them and gives their pages back. Reading them again is allowed.
    void pack_panels(int64_t begin, int64_t end, uint8_t* out, ThreadPool& pool) const;

private:
    /// A source's mapping, and the panel that the next source begins with.
    struct File {
        std::shared_ptr<const MappedFile> mapping;
        int64_t end_panel;
    };
    /// A block of columns of neighbouring panels of a tile.
    struct PanelBlocks {
        const uint8_t* const* panels;
        /// First of the tile's panels.
        int64_t first;
        int64_t count;
        int64_t block;
    };

    int64_t row_bytes() const { return cols_ * 2; }
    int64_t blocks() const { return cols_ / kFloatBlock; }
    int64_t num_panels() const { return static_cast<int64_t>(panels_.size()); }
    WeightRows panel(int64_t index) const;
    /// The index-th of a tile's: all panels of block 0, num_groups groups of them, then those of block 1.
    PanelBlocks panel_blocks(const Tile& tile, int64_t index, int64_t num_groups) const;
    void multiply_few(const OtherTiles& others, const uint8_t* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                      ThreadPool& pool) const;
    void multiply_many(const OtherTiles& others, const uint8_t* rows, int64_t m, const LinearOutput& output, Workspace& workspace,
                       ThreadPool& pool) const;
    void release(int64_t begin, int64_t end) const;

    int64_t rows_;
    int64_t cols_;
    const FloatKernelTable& table_;
    const InPlaceKernelTable& kernels_;
    std::vector<File> files_;
    /// Where every sixteen rows begin.
    std::vector<const uint8_t*> panels_;
    /// A copy of the last rows when they are fewer than sixteen, padded with zeros.
    AlignedMemory last_;
};

}  // namespace octavo
