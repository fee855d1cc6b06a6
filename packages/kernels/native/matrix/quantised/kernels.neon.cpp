#include "../../simd/neon.h"

#include "quantised_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 1;
    static constexpr int kRows = 2;
    static constexpr int kRowsByRow = 2;
    static constexpr int kBlockGroups = 32;
    static constexpr int kStreamPanels = 1;
    static constexpr int kStreamRows = 2;
    static constexpr int kStreamGroups = 16;
    static constexpr int kMaxStreamRows = 2;
    static constexpr int kPrefetchBytes = 2048;
};

}  // namespace

const QuantisedKernelTable quantised_kernels_neon = make_quantised_kernels<Tiling>();

}  // namespace octavo
