#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

/// To be raised whenever packed bytes come to mean something else: files of packed weights outlive the build that wrote them.
constexpr int kPackedLayoutVersion = 2;

/// Packed weights are cut into panels of 16 output rows; rows that pad the last panel are zero.
constexpr int kPanelRows = 16;
/// Columns that share one activation scale, and the unit in which quantised weights are packed.
constexpr int kGroup = 32;
/// Float products are summed in partial sums over this many columns, then block by block: one order for every path.
constexpr int kFloatBlock = 256;

}  // namespace octavo
