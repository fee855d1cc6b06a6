#pragma once
#include "quantised_panel.h"

// One group of several panels, as products read it; included after an instruction set's vocabulary.
namespace octavo {
namespace {

/// Weights of R panels as they lie packed.
template <class P, int R>
struct PackedGroup {
    const uint8_t* codes[R];
    typename P::Meta meta[R];

    SIMD_INLINE PackedGroup(const PanelView* panels, int64_t group) {
        SIMD_UNROLL
        for (int r = 0; r < R; ++r) {
            codes[r] = panels[r].codes + code_offset(P::kFormat, group);
            P::load_meta(panels[r], group, meta[r]);
        }
    }
    template <int J>
    SIMD_INLINE V::Bytes quad(int r) const {
        return V::pinned(P::template load_quad<J>(codes[r]));
    }
    SIMD_INLINE V::Floats scale(int r, int h) const { return meta[r].scales[h]; }
    SIMD_INLINE V::Floats minimum(int r, int h) const { return meta[r].minima[h]; }
};

/// Weights of R neighbouring panels unpacked.
template <class P, int R>
struct UnpackedGroup {
    const uint8_t* codes;
    const float* scales;
    const float* minima;
    int64_t groups;
    int64_t panel_bytes;

    SIMD_INLINE UnpackedGroup(const UnpackedPanels& weights, int first_panel, int64_t group)
        : codes(weights.codes + first_panel * weights.panel_bytes + group * weights.group_bytes),
          scales(weights.scales + (first_panel * weights.groups + group) * P::kScales * kPanelRows),
          minima(weights.minima + (first_panel * weights.groups + group) * P::kMinima * kPanelRows),
          groups(weights.groups),
          panel_bytes(weights.panel_bytes) {}
    template <int J>
    SIMD_INLINE V::Bytes quad(int r) const {
        return V::pinned(V::load_bytes(codes + r * panel_bytes + 64 * J));
    }
    SIMD_INLINE V::Floats scale(int r, int h) const {
        return V::load_f32(reinterpret_cast<const uint8_t*>(scales + (r * groups * P::kScales + h) * kPanelRows));
    }
    SIMD_INLINE V::Floats minimum(int r, int h) const {
        return V::load_f32(reinterpret_cast<const uint8_t*>(minima + (r * groups * P::kMinima + h) * kPanelRows));
    }
};

}  // namespace
}  // namespace octavo
