#pragma once
#include <memory>

#include "../../core/aligned_memory.h"
#include "../matrix.h"
#include "../pack_progress.h"
#include "quantised_kernels.h"
#include "../source.h"

namespace octavo {

/// Panels of one quantised format, see layout.h.
struct QuantisedPanels {
    /// Index in kFormats.
    int format;
    int64_t rows;
    int64_t cols;
    int64_t groups_per_scale;
    int64_t pair_bytes;
    AlignedMemory memory;

    const Format& traits() const { return kFormats[format]; }
    int64_t groups() const { return cols / kGroup; }
    int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
    /// The last pair of an odd number has a second panel of zeros.
    int64_t pairs() const { return (panels() + kPairPanels - 1) / kPairPanels; }
    size_t bytes() const { return static_cast<size_t>(pairs() * pair_bytes); }
    const uint8_t* pair(int64_t index) const { return memory.data() + index * pair_bytes; }
    PanelView panel(int64_t index) const { return panel_of(pair(index / kPairPanels), index % kPairPanels); }
    /// View of a panel at any address.
    PanelView panel_of(const uint8_t* start, int64_t place) const {
        return {start + place * group_code_bytes(traits().bits),
                start + first_meta_offset(traits(), place, groups(), groups_per_scale), groups_per_scale};
    }
};

/// Where panels of a type lie, without memory for them.
QuantisedPanels quantised_panels(WeightType type, bool zeros, int64_t rows, int64_t cols, int64_t group);

class QuantisedPacker;
struct Tile;

/// Packed panels. Those not packed yet are packed from their sources whenever they are multiplied, into scratch that stays in cache.
class QuantisedMatrix final : public Matrix {
public:
    /// Takes panels that are already packed.
    explicit QuantisedMatrix(QuantisedPanels panels);
    /// Without any.
    explicit QuantisedMatrix(std::unique_ptr<const QuantisedPacker> packer);
    ~QuantisedMatrix() override;

    const uint8_t* packed() const override;
    bool reads_files() const override { return packer_ != nullptr; }
    size_t pack_more(size_t bytes, ThreadPool& pool) override;

    int64_t rows() const override { return panels_.rows; }
    int64_t cols() const override { return panels_.cols; }
    size_t bytes() const override { return panels_.bytes(); }
    RowEncoding encoding() const override;
    size_t encoded_bytes(int64_t m) const override;
    void encode(const float* x, int64_t row, int64_t m, void* rows) const override;
    void multiply(const void* rows, int64_t m, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const override;
    void row(int64_t r, float* out) const override;

private:
    struct Layout;
    /// Whether all panels before `end` are packed.
    bool has_panels(int64_t end) const { return end <= progress_.num_packed() * kPairPanels || packer_ == nullptr; }
    /// First byte that is read for a panel and the next.
    const uint8_t* reads_from(int64_t panel) const;
    /// A pair of panels from `first` on, packed into `scratch` where it is not yet; `next` is what is multiplied after it.
    PackedPair pair(int64_t first, int64_t next, uint8_t* scratch) const;
    /// Whether m rows are multiplied by packed panels, without unpacking them first.
    bool streams(int64_t m) const;
    /// Sums of a tile times the scales of the weights' rows, where these have one each.
    void scale_rows(const Tile& tile, float* sums, int64_t stride) const;
    void multiply_packed(const Layout& rows, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const;
    void multiply_unpacked(const Layout& rows, const LinearOutput& output, Workspace& workspace, ThreadPool& pool) const;

    QuantisedPanels panels_;
    /// Null once all is packed.
    std::unique_ptr<const QuantisedPacker> packer_;
    /// In pairs.
    PackProgress progress_;
    const QuantisedKernelTable& table_;
    const QuantisedKernels& kernels_;
};

}  // namespace octavo
