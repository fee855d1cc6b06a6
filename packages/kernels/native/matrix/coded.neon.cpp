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

#include "coded_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_neon() { return kCodedTable; }

}  // namespace octavo
