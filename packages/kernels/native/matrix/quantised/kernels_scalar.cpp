#include "../../simd/scalar.h"

#include "quantised_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 1;
    static constexpr int kRows = 1;
    static constexpr int kRowsByRow = 1;
    static constexpr int kBlockGroups = 8;
    static constexpr int kStreamPanels = 1;
    static constexpr int kStreamRows = 1;
    static constexpr int kStreamGroups = 1;
    static constexpr int kMaxStreamRows = 0;
    static constexpr int kPrefetchBytes = 0;
};

}  // namespace

const QuantisedKernelTable quantised_kernels_scalar = make_quantised_kernels<Tiling>();

}  // namespace octavo
