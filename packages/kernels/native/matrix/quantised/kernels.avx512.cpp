#include "../../simd/avx512.h"

#include "quantised_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 2;
    static constexpr int kRows = 4;
    static constexpr int kRowsByRow = 6;
    static constexpr int kBlockGroups = 16;
    static constexpr int kStreamPanels = 2;
    static constexpr int kStreamRows = 4;
    static constexpr int kStreamGroups = 16;
    static constexpr int kMaxStreamRows = 64;
    static constexpr int kPrefetchBytes = 9216;
};

}  // namespace

const QuantisedKernelTable quantised_kernels_avx512 = make_quantised_kernels<Tiling>();
const QuantisedKernelTable quantised_kernels_avx512_bf16 = make_quantised_kernels<Tiling>();

}  // namespace octavo
