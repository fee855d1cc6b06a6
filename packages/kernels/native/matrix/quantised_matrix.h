#pragma once
#include "../core/aligned_memory.h"
#include "matrix.h"
#include "quantised_kernels.h"
#include "source.h"

namespace octavo {

/// Panels of one quantised format, see layout.h.
struct QuantisedPanels {
    FormatId format;
    int64_t rows;
    int64_t cols;
    int64_t groups_per_scale;
    int64_t pair_bytes;
    AlignedMemory memory;

    const Format& traits() const { return kFormats[static_cast<int>(format)]; }
    int64_t groups() const { return cols / kGroup; }
    int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
    /// The last pair of an odd number has a second panel of zeros.
    int64_t pairs() const { return (panels() + kPairPanels - 1) / kPairPanels; }
    size_t bytes() const { return static_cast<size_t>(pairs() * pair_bytes); }
    const uint8_t* pair(int64_t index) const { return memory.data() + index * pair_bytes; }
    PanelView panel(int64_t index) const {
        const uint8_t* start = pair(index / kPairPanels);
        const int64_t place = index % kPairPanels;
        return {start + place * group_code_bytes(traits().bits),
                start + first_meta_offset(traits(), place, groups(), groups_per_scale), groups_per_scale};
    }
};

/// Where panels of a type lie, without memory for them.
QuantisedPanels quantised_panels(WeightType type, bool zeros, int64_t rows, int64_t cols, int64_t group);

/// Repacks in parallel; throws as Matrix::pack does.
QuantisedPanels pack_quantised(const SourceStack& stack, ThreadPool& pool);

class QuantisedMatrix final : public Matrix {
public:
    explicit QuantisedMatrix(QuantisedPanels panels);
    const uint8_t* packed() const override { return panels_.memory.data(); }

    int64_t rows() const override { return panels_.rows; }
    int64_t cols() const override { return panels_.cols; }
    size_t bytes() const override { return panels_.memory.size(); }
    RowEncoding encoding() const override;
    size_t encoded_bytes(int64_t m) const override;
    void encode(const float* x, int64_t row, int64_t m, void* rows) const override;
    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

private:
    struct Layout;
    /// Whether m rows are multiplied by the panels as they lie packed.
    bool streams(int64_t m) const;
    void multiply_packed(const Layout& rows, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const;
    void multiply_unpacked(const Layout& rows, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const;

    QuantisedPanels panels_;
    const QuantisedKernelTable& table_;
    const QuantisedKernels& kernels_;
};

}  // namespace octavo
