#include "../core/half.h"
#include "coded_kernels.h"
#include "layout.h"

namespace octavo {

namespace {

struct Table {
    const float* entries;
    explicit Table(const float* table) : entries(table) {}
    void lookup(const uint8_t* codes, float* out) const {
        for (int i = 0; i < 8; ++i) {
            out[i] = entries[codes[i] & 0x0f];
            out[i + 8] = entries[codes[i] >> 4];
        }
    }
};

// Significand, with its leading bit unless the code is subnormal, times a power of two with the sign. Shifting the fields into an
// f32 would make subnormals of it, which are slow.
void from_e4m3(const uint8_t* codes, float* out) {
    for (int i = 0; i < kPanelRows; ++i) {
        const uint32_t code = codes[i];
        const uint32_t exponent = code >> 3 & 15u;
        const uint32_t normal = exponent > 0 ? 1u : 0u;
        const float significand = static_cast<float>((code & 7u) + 8u * normal);
        out[i] = significand * float_from_bits((code & 0x80u) << 24 | (exponent - normal + 118u) << 23);
    }
}

#include "coded_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_scalar() { return kCodedTable; }

}  // namespace octavo
