#include "../../simd/neon.h"

#include "float_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 1;
    static constexpr int kRows = 4;
    static constexpr int kPrefetchBytes = 2048;
};

}  // namespace

const FloatKernelTable float_kernels_neon = make_float_kernels<Tiling, CodecBf16>();

}  // namespace octavo
