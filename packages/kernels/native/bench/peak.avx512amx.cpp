#include <immintrin.h>

#include "peak.h"

namespace octavo::test {

namespace {

struct alignas(64) TileConfig {
    uint8_t palette = 1;
    uint8_t reserved[15] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

int32_t int8_loop(int64_t rounds) {
    const TileConfig config;
    // GCC believes that the instruction reads eight bytes.
    asm volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
    for (int64_t round = 0; round < rounds; ++round) {
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_release();
    return 0;
}

}  // namespace

Peak peak_avx512_amx() { return {int8_loop, int64_t{4} * 2 * 16 * 16 * 64, nullptr, 0, nullptr, 0}; }

}  // namespace octavo::test
