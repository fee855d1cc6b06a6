#pragma once
#include <cstdint>
#include <vector>

#include "layout.h"
#include "source.h"

namespace octavo {

/// Where the sixteen rows of a panel lie; rows that pad the last panel are read from zeros.
struct PanelRows {
    const uint8_t* values[kPanelRows];
    /// f32 scales and zero points of int8 and int4; null where the type or the source has none.
    const uint8_t* scales[kPanelRows];
    const uint8_t* zeros[kPanelRows];
};

/// Gives out the rows of a stack panel by panel, and the pages of what has been packed back to the system, so that hardly
/// more than one copy of the weights is resident at any time.
class PanelSource {
public:
    explicit PanelSource(const SourceStack& stack);

    PanelRows rows(int64_t panel) const;
    /// Panels that a thread takes at a time.
    int64_t grain() const { return grain_; }
    /// After panels [begin, end) have been packed.
    void release(int64_t begin, int64_t end) const;

private:
    const SourceStack& stack_;
    std::vector<uint8_t> padding_;
    int64_t grain_;
};

}  // namespace octavo
