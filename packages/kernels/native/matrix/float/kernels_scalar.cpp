#include "../../simd/scalar.h"

#include "float_products.h"

namespace octavo {

namespace {

struct Tiling {
    static constexpr int kPanels = 1;
    static constexpr int kRows = 1;
    static constexpr int kPrefetchBytes = 0;
};

}  // namespace

const FloatKernelTable float_kernels_scalar = make_float_kernels<Tiling, CodecBf16>();

}  // namespace octavo
