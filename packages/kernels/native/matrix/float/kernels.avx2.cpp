#include "../../simd/avx2.h"

#include "float_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 1;
    static constexpr int kRows = 6;
    static constexpr int kPrefetchBytes = 2048;
};

}  // namespace

const FloatKernelTable float_kernels_avx2 = make_float_kernels<Tiling, CodecBf16>();

}  // namespace octavo
