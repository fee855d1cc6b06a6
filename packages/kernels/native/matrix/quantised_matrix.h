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
    int64_t panel_stride;
    AlignedMemory memory;

    const Format& traits() const { return kFormats[static_cast<int>(format)]; }
    int64_t groups() const { return cols / kGroup; }
    int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
    PanelView panel(int64_t index) const {
        const uint8_t* start = memory.data() + index * panel_stride;
        return {start, start + groups() * group_code_bytes(traits().bits), groups_per_scale};
    }
};

/// Repacks in parallel; throws as Matrix::pack does.
QuantisedPanels pack_quantised(const SourceStack& stack, ThreadPool& pool);

class QuantisedMatrix final : public Matrix {
public:
    explicit QuantisedMatrix(QuantisedPanels panels);

    int64_t rows() const override { return panels_.rows; }
    int64_t cols() const override { return panels_.cols; }
    size_t bytes() const override { return panels_.memory.size(); }
    void linear(const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy, const float* bias, Workspace& workspace,
                ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

private:
    struct Call;
    void stream(const Call& call) const;
    void multiply(const Call& call) const;
    void write(const Call& call, int64_t panel, int64_t first_row, int64_t num_rows, const float* sums, int64_t stride) const;

    QuantisedPanels panels_;
    const QuantisedKernelTable& table_;
    const QuantisedKernels& kernels_;
};

}  // namespace octavo
