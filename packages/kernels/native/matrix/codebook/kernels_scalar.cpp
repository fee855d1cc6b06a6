#include <cstring>

#include "../../core/half.h"
#include "codebook_kernels.h"
#include "../quantised/layout.h"

namespace octavo {

namespace {

constexpr bool kPairs = false;

inline void widen_halves(const uint16_t* halves, float* out) {
    for (int i = 0; i < kPanelRows; ++i) out[i] = f16_to_f32(halves[i]);
}

struct Table {
    const float* entries;
    explicit Table(const float* table) : entries(table) {}
    void lookup(const uint8_t* codes, float* even, float* odd) const {
        for (int i = 0; i < kPanelRows; ++i) {
            even[i] = entries[codes[i] & 0x0f];
            odd[i] = entries[codes[i] >> 4];
        }
    }
};

#include "codebook_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_scalar() {
    static constexpr CodedKernelTable table{kPairs,
                                            nullptr,
                                            {decode_values<CodesF8>, decode_weights<CodesF8>, nullptr},
                                            {decode_values<CodesU8>, decode_weights<CodesU8>, nullptr},
                                            {decode_values<CodesTable4>, decode_weights<CodesTable4>, nullptr}};
    return table;
}

}  // namespace octavo
