#pragma once
#include <vector>

#include "../panel_rows.h"
#include "quantised_matrix.h"
#include "../source.h"

namespace octavo {

struct PanelJob;

/// How a format is packed.
struct QuantisedPacking {
    /// Returns the first row that is not finite, -1 when all are.
    int (*pack)(const PanelJob& job);
    /// Whether all scales of so many blocks are finite; null where scales are separate or are not floats.
    bool (*finite)(const uint8_t* row, int64_t blocks);
};

/// Packs the panels of its sources, in any order and to any memory.
class QuantisedPacker {
public:
    /// Throws as Matrix::pack does.
    explicit QuantisedPacker(const std::vector<MatrixSource>& sources);
    QuantisedPacker(const QuantisedPacker&) = delete;
    QuantisedPacker& operator=(const QuantisedPacker&) = delete;

    /// Where the panels lie, without memory for them.
    QuantisedPanels panels() const;

    /// Whether the sources are mapped files of which `check` can tell that they are sound.
    bool can_check() const;
    /// Reads every scale; throws as Matrix::pack does.
    void check(ThreadPool& pool) const;

    /// Where the rows of a panel begin.
    const uint8_t* source(int64_t panel) const;
    /// Returns the first of the panel's rows that is not finite, -1 when all are.
    int pack(int64_t panel, const PanelView& place) const;
    /// Packs pairs [begin, end) into their places, in parallel, and gives their sources' pages back. Throws as Matrix::pack does.
    void pack_pairs(const QuantisedPanels& panels, int64_t begin, int64_t end, ThreadPool& pool) const;

private:
    std::vector<MatrixSource> sources_;
    SourceStack stack_;
    PanelSource rows_;
    QuantisedPanels shape_;
    QuantisedPacking packing_;
};

}  // namespace octavo
