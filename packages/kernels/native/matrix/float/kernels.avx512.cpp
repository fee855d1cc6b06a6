#include "../../simd/avx512.h"

#include "float_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 4;
    static constexpr int kRows = 6;
    static constexpr int kPrefetchBytes = 2048;
};

}  // namespace

const FloatKernelTable float_kernels_avx512 = make_float_kernels<Tiling, CodecBf16>();

}  // namespace octavo
