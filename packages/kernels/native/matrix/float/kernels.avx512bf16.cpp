#include "../../simd/avx512.h"

#include "float_products.h"

namespace octavo {

namespace {

/// Pairs of bf16 multiplied and summed by VDPBF16PS, which treats subnormals as zero.
struct CodecBf16Dot {
    static constexpr int kColumns = 2;
    static constexpr int64_t kWeightBytes = 4 * kPanelRows;
    static constexpr int64_t kActivationBytes = 4;
    using Weights = ByteVec;
    using Activations = ByteVec;
    static SIMD_INLINE Weights load(const uint8_t* p) { return pinned(load_bytes(p)); }
    static SIMD_INLINE Activations broadcast(const uint8_t* p) { return load_quad(reinterpret_cast<const int8_t*>(p)); }
    static SIMD_INLINE V::Floats add_product(Weights w, Activations a, V::Floats sum) {
        return {{{_mm512_dpbf16_ps(sum.v[0].lanes, (__m512bh)w.lanes, (__m512bh)a.lanes)}}};
    }
};

struct Tiling {
    static constexpr int kPanels = 4;
    static constexpr int kRows = 6;
    static constexpr int kPrefetchBytes = 2048;
};

}  // namespace

const FloatKernelTable float_kernels_avx512_bf16 = make_float_kernels<Tiling, CodecBf16Dot>();

}  // namespace octavo
