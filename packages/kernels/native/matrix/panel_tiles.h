#pragma once
#include "../simd/portable.h"
#include "layout.h"

namespace octavo {

/// Sixteen bytes of each of a panel's rows turned into four runs of [16 rows][4 bytes].
struct Tile {
    /// [run][rows 4r to 4r + 3]
    Words4 runs[4][4];

    /// `bytes_at(lane)` gives the sixteen bytes of a row.
    template <class BytesAt>
    static inline Tile of(const BytesAt& bytes_at) {
        Tile tile;
        for (int r = 0; r < 4; ++r) {
            const Words4 a = reinterpret_cast<Words4>(bytes_at(4 * r));
            const Words4 b = reinterpret_cast<Words4>(bytes_at(4 * r + 1));
            const Words4 c = reinterpret_cast<Words4>(bytes_at(4 * r + 2));
            const Words4 d = reinterpret_cast<Words4>(bytes_at(4 * r + 3));
            const Words4 ab_low = OCTAVO_SHUFFLE(Words4, uint32_t, a, b, 0, 4, 1, 5);
            const Words4 cd_low = OCTAVO_SHUFFLE(Words4, uint32_t, c, d, 0, 4, 1, 5);
            const Words4 ab_high = OCTAVO_SHUFFLE(Words4, uint32_t, a, b, 2, 6, 3, 7);
            const Words4 cd_high = OCTAVO_SHUFFLE(Words4, uint32_t, c, d, 2, 6, 3, 7);
            tile.runs[0][r] = OCTAVO_SHUFFLE(Words4, uint32_t, ab_low, cd_low, 0, 1, 4, 5);
            tile.runs[1][r] = OCTAVO_SHUFFLE(Words4, uint32_t, ab_low, cd_low, 2, 3, 6, 7);
            tile.runs[2][r] = OCTAVO_SHUFFLE(Words4, uint32_t, ab_high, cd_high, 0, 1, 4, 5);
            tile.runs[3][r] = OCTAVO_SHUFFLE(Words4, uint32_t, ab_high, cd_high, 2, 3, 6, 7);
        }
        return tile;
    }

    void store_to(uint8_t* out) const {
        for (int run = 0; run < 4; ++run) {
            for (int r = 0; r < 4; ++r) store(out + (4 * run + r) * 16, runs[run][r]);
        }
    }

    /// run 0 | run 1 << shift | run 2 << 2 * shift | run 3 << 3 * shift, 64 bytes; no bit may leave its byte.
    void store_merged(int shift, uint8_t* out) const {
        for (int r = 0; r < 4; ++r) {
            store(out + 16 * r, runs[0][r] | runs[1][r] << shift | runs[2][r] << 2 * shift | runs[3][r] << 3 * shift);
        }
    }
};

/// Sixteen bytes of each row turned into sixteen runs of one byte of each row.
template <class BytesAt>
static inline void store_transposed_bytes(const BytesAt& bytes_at, uint8_t* out) {
    // Four rounds of interleaving a row with the one eight further on bring byte i of every row together.
    Bytes16 from[kPanelRows];
    for (int lane = 0; lane < kPanelRows; ++lane) from[lane] = bytes_at(lane);
    for (int round = 0; round < 4; ++round) {
        Bytes16 to[kPanelRows];
        for (int i = 0; i < kPanelRows / 2; ++i) {
            to[2 * i] = interleave_low(from[i], from[i + kPanelRows / 2]);
            to[2 * i + 1] = interleave_high(from[i], from[i + kPanelRows / 2]);
        }
        std::memcpy(from, to, sizeof from);
    }
    for (int i = 0; i < kPanelRows; ++i) store(out + 16 * i, from[i]);
}

/// Which of a panel's rows hold a value whose exponent bits are all ones: infinite or NaN.
template <class Vector, class Element, Element kExponent>
class NonFinite {
public:
    static constexpr int kVectors = kPanelRows * sizeof(Element) / 16;

    /// `part`: which of the row's lanes these values belong to.
    void see(int part, Vector values) {
        const Vector mask = Vector{} + kExponent;
        bad_[part] |= reinterpret_cast<Vector>((values & mask) == mask);
    }

    /// -1 when all are finite.
    int first_lane() const {
        for (int lane = 0; lane < kPanelRows; ++lane) {
            constexpr int kPerVector = kPanelRows / kVectors;
            if (bad_[lane / kPerVector][lane % kPerVector] != 0) return lane;
        }
        return -1;
    }

private:
    Vector bad_[kVectors] = {};
};

using NonFiniteF16 = NonFinite<Halves8, uint16_t, 0x7c00>;
using NonFiniteF32 = NonFinite<Words4, uint32_t, 0x7f800000>;

}  // namespace octavo
