#pragma once
#include "../../core/half.h"
#include "../layout.h"
#include "float_kernels.h"

// The products of float panels with rows; included after an instruction set's vocabulary.
// A codec turns one step of packed weights (1 or 2 columns of 16 rows) and of a row's activations into vectors.
namespace octavo {
namespace {

struct CodecF32 {
    static constexpr int kColumns = 1;
    static constexpr int64_t kWeightBytes = 4 * kPanelRows;
    static constexpr int64_t kActivationBytes = 4;
    using Weights = V::Floats;
    using Activations = V::Floats;
    static SIMD_INLINE Weights load(const uint8_t* p) { return V::load_f32(p); }
    static SIMD_INLINE Activations broadcast(const uint8_t* p) { return V::broadcast_f32(p); }
    static SIMD_INLINE V::Floats add_product(Weights w, Activations a, V::Floats sum) { return V::fma(w, a, sum); }
};

struct CodecF16 : CodecF32 {
    static constexpr int64_t kWeightBytes = 2 * kPanelRows;
    static SIMD_INLINE Weights load(const uint8_t* p) { return V::load_f16(p); }
};

/// Two fused steps per pair, odd column first, as VDPBF16PS is specified.
struct CodecBf16 {
    static constexpr int kColumns = 2;
    static constexpr int64_t kWeightBytes = 4 * kPanelRows;
    static constexpr int64_t kActivationBytes = 4;
    struct Pair {
        V::Floats even;
        V::Floats odd;
    };
    using Weights = Pair;
    using Activations = Pair;
    static SIMD_INLINE Pair split(V::Ints pairs) { return {V::even_bf16(pairs), V::odd_bf16(pairs)}; }
    static SIMD_INLINE Weights load(const uint8_t* p) { return split(V::load_ints(p)); }
    static SIMD_INLINE Activations broadcast(const uint8_t* p) {
        int32_t pair;
        std::memcpy(&pair, p, sizeof pair);
        return split(V::broadcast_int(pair));
    }
    static SIMD_INLINE V::Floats add_product(const Weights& w, const Activations& a, V::Floats sum) {
        return V::fma(w.even, a.even, V::fma(w.odd, a.odd, sum));
    }
};

template <class Tiling, class Codec, int R, int C, bool Prefetch>
void float_tile(const FloatPanels& panels, const FloatRows& rows, int64_t columns, float* sums, int64_t stride, bool first) {
    const uint8_t* weights = panels.data;
    const int64_t panel_stride = panels.stride;
    V::Floats sum[R][C];
    SIMD_UNROLL
    for (int r = 0; r < R; ++r) {
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) sum[r][c] = V::broadcast(0.0f);
    }
    const uint8_t* activations = rows.data;
    for (int64_t step = 0; step < columns / Codec::kColumns; ++step) {
        typename Codec::Weights w[R];
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            if constexpr (Prefetch) V::prefetch(weights + r * panel_stride + Tiling::kPrefetchBytes);
            w[r] = Codec::load(weights + r * panel_stride);
        }
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            const typename Codec::Activations a = Codec::broadcast(activations + c * rows.stride);
            SIMD_UNROLL
            for (int r = 0; r < R; ++r) sum[r][c] = Codec::add_product(w[r], a, sum[r][c]);
        }
        weights += Codec::kWeightBytes;
        activations += Codec::kActivationBytes;
    }
    if (panels.scales != nullptr) {
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            const V::Floats scale = V::load_f32(reinterpret_cast<const uint8_t*>(panels.scales + r * panels.scale_stride));
            SIMD_UNROLL
            for (int c = 0; c < C; ++c) sum[r][c] = V::mul(sum[r][c], scale);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < R; ++r) {
        SIMD_UNROLL
        for (int c = 0; c < C; ++c) {
            float* out = sums + c * stride + r * kPanelRows;
            V::store_f32(out, first ? sum[r][c] : V::add(V::load_f32(reinterpret_cast<const uint8_t*>(out)), sum[r][c]));
        }
    }
}

template <class Tiling, class Codec, int R, int C>
void float_rows(const FloatPanels& panels, const FloatRows& rows, int64_t columns, float* sums, int64_t stride, bool first,
                bool from_memory) {
    if (from_memory) {
        float_tile<Tiling, Codec, R, C, true>(panels, rows, columns, sums, stride, first);
    } else {
        float_tile<Tiling, Codec, R, C, false>(panels, rows, columns, sums, stride, first);
    }
}

template <class Tiling, class Codec, int R>
void float_panels(const FloatPanels& panels, const FloatRows& rows, int64_t num_rows, int64_t columns, float* sums,
                  int64_t stride, bool first) {
    // The first tile brings the block into cache; the others find it there.
    for (int64_t row = 0; row < num_rows;) {
        const FloatRows at{rows.data + row * rows.stride, rows.stride};
        const bool from_memory = row == 0 && !panels.cached;
        float* out = sums + row * stride;
        const int64_t left = num_rows - row;
        if (left >= Tiling::kRows) {
            float_rows<Tiling, Codec, R, Tiling::kRows>(panels, at, columns, out, stride, first, from_memory);
            row += Tiling::kRows;
        } else if (left >= 2) {
            float_rows<Tiling, Codec, R, 2>(panels, at, columns, out, stride, first, from_memory);
            row += 2;
        } else {
            float_rows<Tiling, Codec, R, 1>(panels, at, columns, out, stride, first, from_memory);
            row += 1;
        }
    }
}

template <class Tiling, class Codec>
void float_multiply(const FloatPanels& weights, const FloatRows& rows, int64_t num_rows, int64_t columns, float* sums,
                    int64_t stride, bool first) {
    const auto from = [&](int panel) {
        FloatPanels panels = weights;
        panels.data += panel * weights.stride;
        if (panels.scales != nullptr) panels.scales += panel * weights.scale_stride;
        return panels;
    };
    int panel = 0;
    for (; panel + Tiling::kPanels <= weights.panels; panel += Tiling::kPanels) {
        float_panels<Tiling, Codec, Tiling::kPanels>(from(panel), rows, num_rows, columns, sums + panel * kPanelRows, stride, first);
    }
    for (; panel < weights.panels; ++panel) {
        float_panels<Tiling, Codec, 1>(from(panel), rows, num_rows, columns, sums + panel * kPanelRows, stride, first);
    }
}

void round_to_bf16(const float* x, int64_t count, uint16_t* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = f32_to_bf16(x[i]);
}

template <class Tiling, class Bf16>
constexpr FloatKernelTable make_float_kernels() {
    return {float_multiply<Tiling, CodecF32>, float_multiply<Tiling, CodecF16>, float_multiply<Tiling, Bf16>, round_to_bf16,
            Tiling::kPanels};
}

}  // namespace
}  // namespace octavo
