#include "float_pack.h"

#include "../panel_tiles.h"

namespace octavo {

namespace {

/// Both halves of each word.
using NonFiniteBf16 = NonFinite<Halves8, uint16_t, 0x7f80>;

/// Sixteen bytes of every row from byte `at` on; `count` of them exist.
Tile read_tile(const PanelRows& rows, int64_t at, int64_t count) {
    if (count >= 16) return Tile::of([&](int lane) { return load_as<Bytes16>(rows.values[lane] + at); });
    return Tile::of([&](int lane) {
        Bytes16 bytes{};
        std::memcpy(&bytes, rows.values[lane] + at, static_cast<size_t>(count));
        return bytes;
    });
}

}  // namespace

int64_t float_panel_bytes(WeightType type, int64_t cols) {
    return source_row_bytes(type, type == WeightType::bf16 ? (cols + 1) / 2 * 2 : cols) * kPanelRows;
}

int pack_float_panel(WeightType type, const PanelRows& rows, int64_t cols, uint8_t* out) {
    const int64_t row_bytes = source_row_bytes(type, cols);
    NonFiniteF32 check_f32;
    NonFiniteF16 check_f16;
    NonFiniteF32 check_bf16;
    for (int64_t at = 0; at < row_bytes; at += 16) {
        const int64_t count = row_bytes - at < 16 ? row_bytes - at : 16;
        const Tile tile = read_tile(rows, at, count);
        // A run is a column of f32, or two columns of the others.
        for (int run = 0; run < 4 && 4 * run < count; ++run) {
            const Words4* words = tile.runs[run];
            if (type == WeightType::f16) {
                for (int part = 0; part < 2; ++part) {
                    const Halves8 even = even_halves(words[2 * part], words[2 * part + 1]);
                    const Halves8 odd = odd_halves(words[2 * part], words[2 * part + 1]);
                    check_f16.see(part, even);
                    check_f16.see(part, odd);
                    store(out + 16 * part, even);
                    if (4 * run + 2 < count) store(out + 32 + 16 * part, odd);
                }
            } else {
                for (int part = 0; part < 4; ++part) {
                    if (type == WeightType::bf16) check_bf16.see(part, words[part] << 16);
                    check_f32.see(part, words[part]);
                    store(out + 16 * part, words[part]);
                }
            }
            out += 64;
        }
    }
    if (type == WeightType::f16) return check_f16.first_lane();
    const int bad_odd = check_f32.first_lane();
    const int bad_even = check_bf16.first_lane();
    return bad_even < 0 || (bad_odd >= 0 && bad_odd < bad_even) ? bad_odd : bad_even;
}

}  // namespace octavo
