#pragma once
// What every instruction set's vocabulary has in common; included by its header.
namespace octavo {
namespace {

SIMD_INLINE Vec load_f16(const uint16_t* p) { return from_f16(load_bits(p)); }
SIMD_INLINE Vec load_bf16(const uint16_t* p) { return from_bf16(load_bits(p)); }
SIMD_INLINE Vec load_i8(const int8_t* p) { return to_floats(widen_i8(p)); }
SIMD_INLINE Vec load_some_f16(const uint16_t* p, int count) { return from_f16(load_some_bits(p, count)); }
SIMD_INLINE Vec load_some_bf16(const uint16_t* p, int count) { return from_bf16(load_some_bits(p, count)); }
SIMD_INLINE Vec load_some_i8(const int8_t* p, int count) {
    int8_t lanes[Vec::width] = {};
    for (int i = 0; i < count; i++) lanes[i] = p[i];
    return load_i8(lanes);
}
/// Integral values in [-128, 127].
SIMD_INLINE void store_i8(int8_t* p, Vec a) { store_i8(p, to_ints(a)); }

/// Sixteen lanes, in as many registers as they take.
template <class Register>
struct Sixteen {
    static constexpr int count = 16 / Vec::width;
    Register v[count];
};

template <class Make>
SIMD_INLINE auto sixteen(const Make& make) {
    Sixteen<decltype(make(0))> out;
    SIMD_UNROLL
    for (int i = 0; i < out.count; ++i) out.v[i] = make(i);
    return out;
}

/// Sixteen lanes at a time: the rows of a panel of weights. The products of matrices are written in these.
struct V {
    static constexpr int width = Vec::width;
    using Floats = Sixteen<Vec>;
    using Ints = Sixteen<IntVec>;
    using Bytes = Sixteen<ByteVec>;
    using Quad = ByteVec;

    static SIMD_INLINE void prefetch(const uint8_t* p) { __builtin_prefetch(p); }

    static SIMD_INLINE Bytes load_bytes(const uint8_t* p) {
        return sixteen([=](int i) { return octavo::load_bytes(p + 4 * width * i); });
    }
    static SIMD_INLINE Bytes pinned(Bytes a) {
        return sixteen([&](int i) { return octavo::pinned(a.v[i]); });
    }
    /// Codes of 8 bits as `dot` takes them.
    static SIMD_INLINE Bytes load_byte_codes(const uint8_t* p) {
        if constexpr (!kCentredBytes) return load_bytes(p);
        return sixteen([=](int i) { return octavo::load_bytes(p + 4 * width * i) ^ splat_byte(0x80); });
    }
    static SIMD_INLINE void store_bytes(uint8_t* p, Bytes a) {
        SIMD_UNROLL
        for (int i = 0; i < a.count; ++i) octavo::store_bytes(p + 4 * width * i, a.v[i]);
    }
    /// Each byte shifted left by `Shift` (right when negative), then masked.
    template <int Shift, int Mask>
    static SIMD_INLINE Bytes field(Bytes a) {
        return sixteen([&](int i) { return shift_bytes<Shift>(a.v[i]) & splat_byte(Mask); });
    }
    static SIMD_INLINE Bytes merge(Bytes a, Bytes b) {
        return sixteen([&](int i) { return a.v[i] | b.v[i]; });
    }
    /// Entries of a table of sixteen, by codes below 16, as `load_byte_codes` would give them.
    static SIMD_INLINE Bytes look_up(Bytes codes, const uint8_t* table) {
        const ByteVec entries = kCentredBytes ? load_table(table) ^ splat_byte(0x80) : load_table(table);
        return sixteen([&](int i) { return octavo::look_up(entries, codes.v[i]); });
    }

    static SIMD_INLINE Quad load_quad(const int8_t* p) { return octavo::load_quad(p); }
    template <int Bits>
    static SIMD_INLINE Ints dot(Ints sum, Bytes w, Quad quad) {
        return sixteen([&](int i) { return octavo::dot<Bits>(sum.v[i], w.v[i], quad); });
    }
    static SIMD_INLINE Ints widen(Ints sum, Ints narrow) {
        return sixteen([&](int i) { return octavo::widen(sum.v[i], narrow.v[i]); });
    }

    static SIMD_INLINE Ints broadcast_int(int32_t value) {
        return sixteen([=](int) { return splat_int(value); });
    }
    static SIMD_INLINE Ints load_ints(const uint8_t* p) {
        return sixteen([=](int i) { return octavo::load_ints(p + 4 * width * i); });
    }
    static SIMD_INLINE Floats to_floats(Ints a) {
        return sixteen([&](int i) { return octavo::to_floats(a.v[i]); });
    }

    static SIMD_INLINE Floats broadcast(float value) {
        return sixteen([=](int) { return splat(value); });
    }
    static SIMD_INLINE Floats broadcast_f32(const uint8_t* p) {
        float value;
        std::memcpy(&value, p, sizeof value);
        return broadcast(value);
    }
    static SIMD_INLINE Floats load_f32(const uint8_t* p) {
        return sixteen([=](int i) { return as_floats(octavo::load_ints(p + 4 * width * i)); });
    }
    static SIMD_INLINE Floats load_f16(const uint8_t* p) {
        return sixteen([=](int i) { return octavo::load_f16(reinterpret_cast<const uint16_t*>(p) + width * i); });
    }
    static SIMD_INLINE Floats load_u8(const uint8_t* p) {
        return sixteen([=](int i) { return octavo::to_floats(widen_u8(p + width * i)); });
    }
    static SIMD_INLINE Floats load_i8(const uint8_t* p) {
        return sixteen([=](int i) { return octavo::load_i8(reinterpret_cast<const int8_t*>(p) + width * i); });
    }
    template <bool High>
    static SIMD_INLINE Floats load_nibbles(const uint8_t* p) {
        return sixteen([=](int i) {
            const IntVec bytes = widen_u8(p + width * i);
            return octavo::to_floats(High ? shift_right<4>(bytes) : bytes & splat_int(15));
        });
    }
    /// 2^(e - 128) of bytes e, 0 where e is 0 or 1.
    static SIMD_INLINE Floats load_halved_powers(const uint8_t* p) {
        return sixteen([=](int i) {
            const IntVec exponents = maximum(widen_u8(p + width * i), splat_int(1));
            return as_floats(shift_left<23>(exponents + splat_int(-1)));
        });
    }
    static SIMD_INLINE void store_f32(float* p, Floats a) {
        SIMD_UNROLL
        for (int i = 0; i < a.count; ++i) store(p + width * i, a.v[i]);
    }
    static SIMD_INLINE Floats even_bf16(Ints pairs) {
        return sixteen([&](int i) { return as_floats(shift_left<16>(pairs.v[i])); });
    }
    static SIMD_INLINE Floats odd_bf16(Ints pairs) {
        return sixteen([&](int i) { return as_floats(pairs.v[i] & splat_int(static_cast<int32_t>(0xffff0000u))); });
    }
    static SIMD_INLINE Floats add(Floats a, Floats b) {
        return sixteen([&](int i) { return a.v[i] + b.v[i]; });
    }
    static SIMD_INLINE Floats mul(Floats a, Floats b) {
        return sixteen([&](int i) { return a.v[i] * b.v[i]; });
    }
    static SIMD_INLINE Floats fma(Floats a, Floats b, Floats c) {
        return sixteen([&](int i) { return multiply_add(a.v[i], b.v[i], c.v[i]); });
    }

    /// Bits of the larger of `most`, one of these itself, and each |value|; a NaN counts as larger than an infinity.
    static SIMD_INLINE Ints larger_magnitudes(Ints most, Floats a) {
        return sixteen([&](int i) { return maximum(most.v[i], as_ints(a.v[i]) & splat_int(0x7fffffff)); });
    }
    static SIMD_INLINE uint32_t largest(Ints a) {
        IntVec most = a.v[0];
        SIMD_UNROLL
        for (int i = 1; i < a.count; ++i) most = maximum(most, a.v[i]);
        return static_cast<uint32_t>(octavo::largest(most));
    }
    /// Rounds 16 values within [-127, 127] to nearest, ties to even, and adds them to `total`.
    static SIMD_INLINE Ints store_rounded(Floats a, int8_t* out, Ints total) {
        return sixteen([&](int i) {
            const IntVec rounded = to_ints(a.v[i]);
            store_i8(out + width * i, rounded);
            return total.v[i] + rounded;
        });
    }
    static SIMD_INLINE int32_t sum(Ints a) {
        IntVec total = a.v[0];
        SIMD_UNROLL
        for (int i = 1; i < a.count; ++i) total = total + a.v[i];
        return octavo::sum(total);
    }
};

}  // namespace
}  // namespace octavo
