#include <cmath>
#include <climits>
#include <cstring>
#include <utility>

#include "../../core/half.h"
#include "../float/float_kernels.h"
#include "quantised_kernels.h"

#define V_INLINE inline __attribute__((always_inline))
// Unrolling pays where a vector is a register; here it only multiplies code.
#define V_UNROLL _Pragma("GCC unroll 1")

namespace octavo {

namespace {

/// Plain C++: the reference for every other instruction set. Integer parts are equal to theirs; float sums round the
/// product as well.
struct V {
    static constexpr bool kCentredBytes = false;
    static constexpr int kTilePanels = 1;
    static constexpr int kTileRows = 1;
    static constexpr int kBlockGroups = 8;
    static constexpr int kStreamPanels = 1;
    static constexpr int kStreamRows = 1;
    static constexpr int kStreamGroups = 1;
    static constexpr int kMaxStreamRows = 0;
    static constexpr int kPrefetchBytes = 0;
    static constexpr int kFloatTilePanels = 1;
    static constexpr int kFloatTileRows = 1;
    static constexpr int kFloatPrefetchBytes = 0;

    struct Bytes {
        uint8_t v[64];
    };
    struct Ints {
        int32_t v[16];
    };
    struct Floats {
        float v[16];
    };
    struct Quad {
        int32_t v[4];
    };

    static V_INLINE void prefetch(const uint8_t*) {}

    static V_INLINE Bytes load_bytes(const uint8_t* p) {
        Bytes bytes;
        std::memcpy(bytes.v, p, sizeof bytes.v);
        return bytes;
    }
    static V_INLINE const Bytes& pinned(const Bytes& bytes) { return bytes; }
    static V_INLINE Bytes load_byte_codes(const uint8_t* p) { return load_bytes(p); }
    static V_INLINE void store_bytes(uint8_t* p, const Bytes& bytes) { std::memcpy(p, bytes.v, sizeof bytes.v); }

    /// Each byte shifted left by `Shift` (right when negative), then masked.
    template <int Shift, int Mask>
    static V_INLINE Bytes field(const Bytes& bytes) {
        Bytes out;
        for (int i = 0; i < 64; ++i) {
            const int shifted = Shift >= 0 ? bytes.v[i] << (Shift >= 0 ? Shift : 0) : bytes.v[i] >> (Shift < 0 ? -Shift : 0);
            out.v[i] = static_cast<uint8_t>(shifted & Mask);
        }
        return out;
    }
    static V_INLINE Bytes merge(const Bytes& a, const Bytes& b) {
        Bytes out;
        for (int i = 0; i < 64; ++i) out.v[i] = static_cast<uint8_t>(a.v[i] | b.v[i]);
        return out;
    }

    static V_INLINE Bytes look_up(const Bytes& codes, const uint8_t* table) {
        Bytes out;
        for (int i = 0; i < 64; ++i) out.v[i] = table[codes.v[i]];
        return out;
    }

    static V_INLINE Quad load_quad(const int8_t* p) { return {{p[0], p[1], p[2], p[3]}}; }
    template <int Bits>
    static V_INLINE Ints dot(const Ints& sum, const Bytes& w, const Quad& a) {
        Ints out;
        for (int i = 0; i < 16; ++i) {
            out.v[i] = sum.v[i] + w.v[4 * i] * a.v[0] + w.v[4 * i + 1] * a.v[1] + w.v[4 * i + 2] * a.v[2] + w.v[4 * i + 3] * a.v[3];
        }
        return out;
    }

    template <int>
    static constexpr int kRun = 0;
    static V_INLINE Ints widen(const Ints& sum, const Ints&) { return sum; }

    static V_INLINE Ints zero_ints() { return broadcast_int(0); }
    static V_INLINE Ints broadcast_int(int32_t value) {
        Ints out;
        for (int i = 0; i < 16; ++i) out.v[i] = value;
        return out;
    }
    static V_INLINE Ints load_ints(const uint8_t* p) {
        Ints out;
        std::memcpy(out.v, p, sizeof out.v);
        return out;
    }

    static V_INLINE Floats to_floats(const Ints& a) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = static_cast<float>(a.v[i]);
        return out;
    }
    static V_INLINE Floats broadcast(float value) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = value;
        return out;
    }
    static V_INLINE Floats broadcast_f32(const uint8_t* p) {
        float value;
        std::memcpy(&value, p, sizeof value);
        return broadcast(value);
    }
    static V_INLINE Floats load_f32(const uint8_t* p) {
        Floats out;
        std::memcpy(out.v, p, sizeof out.v);
        return out;
    }
    static V_INLINE Floats load_f16(const uint8_t* p) {
        uint16_t halves[16];
        std::memcpy(halves, p, sizeof halves);
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = f16_to_f32(halves[i]);
        return out;
    }
    static V_INLINE Floats load_u8(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = static_cast<float>(p[i]);
        return out;
    }
    static V_INLINE Floats load_i8(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = static_cast<float>(static_cast<int8_t>(p[i]));
        return out;
    }
    template <bool High>
    static V_INLINE Floats load_nibbles(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = static_cast<float>(High ? p[i] >> 4 : p[i] & 15);
        return out;
    }
    /// 2^(e - 128) of bytes e, 0 where e is 0 or 1.
    static V_INLINE Floats load_halved_powers(const uint8_t* p) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = float_from_bits((p[i] > 0 ? p[i] - 1u : 0u) << 23);
        return out;
    }
    static V_INLINE void store_f32(float* p, const Floats& a) { std::memcpy(p, a.v, sizeof a.v); }
    static V_INLINE Floats even_bf16(const Ints& pairs) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = float_from_bits(static_cast<uint32_t>(pairs.v[i]) << 16);
        return out;
    }
    static V_INLINE Floats odd_bf16(const Ints& pairs) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = float_from_bits(static_cast<uint32_t>(pairs.v[i]) & 0xffff0000u);
        return out;
    }
    static V_INLINE Floats add(const Floats& a, const Floats& b) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = a.v[i] + b.v[i];
        return out;
    }
    static V_INLINE Floats mul(const Floats& a, const Floats& b) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = a.v[i] * b.v[i];
        return out;
    }
    static V_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
        Floats out;
        for (int i = 0; i < 16; ++i) out.v[i] = a.v[i] * b.v[i] + c.v[i];
        return out;
    }

    /// Bits of the largest |value|; a NaN counts as larger than an infinity.
    static V_INLINE uint32_t largest_magnitude_bits(const Floats& a, const Floats& b) {
        uint32_t largest = 0;
        for (int i = 0; i < 16; ++i) {
            const uint32_t bits_a = float_bits(a.v[i]) & 0x7fffffffu;
            const uint32_t bits_b = float_bits(b.v[i]) & 0x7fffffffu;
            if (bits_a > largest) largest = bits_a;
            if (bits_b > largest) largest = bits_b;
        }
        return largest;
    }
    /// Rounds 16 values within [-127, 127] to nearest, ties to even; returns their sum.
    static V_INLINE int32_t store_rounded(const Floats& a, int8_t* out) {
        // Adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum.
        constexpr float kMagic = 12582912.0f;
        int32_t sum = 0;
        for (int i = 0; i < 16; ++i) {
            const int32_t rounded = static_cast<int32_t>(float_bits(a.v[i] + kMagic)) - 0x4b400000;
            out[i] = static_cast<int8_t>(rounded);
            sum += rounded;
        }
        return sum;
    }
};

#include "../float/float_products.h"
#include "quantised_panel.h"
#include "quantised_products.h"

}  // namespace

const QuantisedKernelTable& quantised_kernels_scalar() { return kQuantisedTable; }

const FloatKernelTable& float_kernels_scalar() {
    static constexpr FloatKernelTable table{float_multiply<CodecF32>, float_multiply<CodecF16>, float_multiply<CodecBf16>,
                                            round_to_bf16, V::kFloatTilePanels};
    return table;
}

}  // namespace octavo
