// 16 lanes in four registers; included inside an anonymous namespace by files compiled for ARMv8.2 with dot products.

struct V {
    /// SDOT multiplies signed by signed: codes up to 6 bits are positive either way, 8-bit codes are dotted as u - 128.
    static constexpr bool kCentredBytes = true;
    static constexpr int kTilePanels = 1;
    static constexpr int kTileRows = 2;
    static constexpr int kBlockGroups = 32;
    static constexpr int kStreamPanels = 1;
    static constexpr int kStreamRows = 2;
    static constexpr int kStreamGroups = 16;
    static constexpr int kMaxStreamRows = 2;
    static constexpr int kPrefetchBytes = 2048;
    static constexpr int kFloatTilePanels = 1;
    static constexpr int kFloatTileRows = 4;
    static constexpr int kFloatPrefetchBytes = 2048;

    struct Bytes {
        uint8x16_t v[4];
    };
    struct Ints {
        int32x4_t v[4];
    };
    struct Floats {
        float32x4_t v[4];
    };
    using Quad = int8x16_t;

    static V_INLINE void prefetch(const uint8_t* p) { __builtin_prefetch(p); }

    static V_INLINE Bytes load_bytes(const uint8_t* p) {
        return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
    }
    static V_INLINE const Bytes& pinned(const Bytes& bytes) { return bytes; }
    static V_INLINE Bytes load_byte_codes(const uint8_t* p) {
        const uint8x16_t flip = vdupq_n_u8(0x80);
        const Bytes bytes = load_bytes(p);
        return {{veorq_u8(bytes.v[0], flip), veorq_u8(bytes.v[1], flip), veorq_u8(bytes.v[2], flip), veorq_u8(bytes.v[3], flip)}};
    }
    static V_INLINE void store_bytes(uint8_t* p, const Bytes& bytes) {
        V_UNROLL
        for (int i = 0; i < 4; ++i) vst1q_u8(p + 16 * i, bytes.v[i]);
    }

    template <int Shift, int Mask>
    static V_INLINE uint8x16_t field(uint8x16_t bytes) {
        const uint8x16_t mask = vdupq_n_u8(Mask);
        if constexpr (Shift > 0) return vandq_u8(vshlq_n_u8(bytes, Shift), mask);
        if constexpr (Shift < 0) return vandq_u8(vshrq_n_u8(bytes, -Shift), mask);
        return vandq_u8(bytes, mask);
    }
    template <int Shift, int Mask>
    static V_INLINE Bytes field(const Bytes& bytes) {
        return {{field<Shift, Mask>(bytes.v[0]), field<Shift, Mask>(bytes.v[1]), field<Shift, Mask>(bytes.v[2]),
                 field<Shift, Mask>(bytes.v[3])}};
    }
    static V_INLINE Bytes merge(const Bytes& a, const Bytes& b) {
        return {{vorrq_u8(a.v[0], b.v[0]), vorrq_u8(a.v[1], b.v[1]), vorrq_u8(a.v[2], b.v[2]), vorrq_u8(a.v[3], b.v[3])}};
    }

    static V_INLINE Bytes look_up(const Bytes& codes, const uint8_t* table) {
        const uint8x16_t entries = veorq_u8(vld1q_u8(table), vdupq_n_u8(0x80));
        return {{vqtbl1q_u8(entries, codes.v[0]), vqtbl1q_u8(entries, codes.v[1]), vqtbl1q_u8(entries, codes.v[2]),
                 vqtbl1q_u8(entries, codes.v[3])}};
    }

    static V_INLINE Quad load_quad(const int8_t* p) {
        int32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return vreinterpretq_s8_s32(vdupq_n_s32(quad));
    }
    template <int Bits>
    static V_INLINE Ints dot(const Ints& sum, const Bytes& w, Quad a) {
        Ints out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vdotq_s32(sum.v[i], vreinterpretq_s8_u8(w.v[i]), a);
        return out;
    }

    template <int>
    static constexpr int kRun = 0;
    static V_INLINE Ints widen(const Ints& sum, const Ints&) { return sum; }

    static V_INLINE Ints zero_ints() { return broadcast_int(0); }
    static V_INLINE Ints broadcast_int(int32_t value) {
        const int32x4_t lanes = vdupq_n_s32(value);
        return {{lanes, lanes, lanes, lanes}};
    }
    static V_INLINE Ints load_ints(const uint8_t* p) {
        const Bytes bytes = load_bytes(p);
        return {{vreinterpretq_s32_u8(bytes.v[0]), vreinterpretq_s32_u8(bytes.v[1]), vreinterpretq_s32_u8(bytes.v[2]),
                 vreinterpretq_s32_u8(bytes.v[3])}};
    }

    static V_INLINE Floats to_floats(const Ints& a) {
        return {{vcvtq_f32_s32(a.v[0]), vcvtq_f32_s32(a.v[1]), vcvtq_f32_s32(a.v[2]), vcvtq_f32_s32(a.v[3])}};
    }
    static V_INLINE Floats broadcast(float value) {
        const float32x4_t lanes = vdupq_n_f32(value);
        return {{lanes, lanes, lanes, lanes}};
    }
    static V_INLINE Floats broadcast_f32(const uint8_t* p) {
        float value;
        std::memcpy(&value, p, sizeof value);
        return broadcast(value);
    }
    static V_INLINE Floats load_f32(const uint8_t* p) {
        const Bytes bytes = load_bytes(p);
        return {{vreinterpretq_f32_u8(bytes.v[0]), vreinterpretq_f32_u8(bytes.v[1]), vreinterpretq_f32_u8(bytes.v[2]),
                 vreinterpretq_f32_u8(bytes.v[3])}};
    }
    static V_INLINE Floats load_f16(const uint8_t* p) {
        const float16x8_t low = vreinterpretq_f16_u8(vld1q_u8(p));
        const float16x8_t high = vreinterpretq_f16_u8(vld1q_u8(p + 16));
        return {{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low), vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high)}};
    }
    static V_INLINE Ints widen_u8(uint8x16_t bytes) {
        const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
        const uint16x8_t high = vmovl_high_u8(bytes);
        return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), vreinterpretq_s32_u32(vmovl_high_u16(low)),
                 vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), vreinterpretq_s32_u32(vmovl_high_u16(high))}};
    }
    static V_INLINE Floats load_u8(const uint8_t* p) { return to_floats(widen_u8(vld1q_u8(p))); }
    template <bool High>
    static V_INLINE Floats load_nibbles(const uint8_t* p) {
        const uint8x16_t bytes = vld1q_u8(p);
        return to_floats(widen_u8(High ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(15))));
    }
    static V_INLINE Floats load_halved_powers(const uint8_t* p) {
        const Ints exponents = widen_u8(vqsubq_u8(vld1q_u8(p), vdupq_n_u8(1)));
        Floats out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vreinterpretq_f32_s32(vshlq_n_s32(exponents.v[i], 23));
        return out;
    }
    static V_INLINE Floats load_i8(const uint8_t* p) {
        const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(p));
        const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
        const int16x8_t high = vmovl_high_s8(bytes);
        return to_floats({{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)}});
    }
    static V_INLINE void store_f32(float* p, const Floats& a) {
        V_UNROLL
        for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.v[i]);
    }
    static V_INLINE Floats even_bf16(const Ints& pairs) {
        Floats out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vreinterpretq_f32_s32(vshlq_n_s32(pairs.v[i], 16));
        return out;
    }
    static V_INLINE Floats odd_bf16(const Ints& pairs) {
        const int32x4_t mask = vdupq_n_s32(static_cast<int32_t>(0xffff0000u));
        Floats out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vreinterpretq_f32_s32(vandq_s32(pairs.v[i], mask));
        return out;
    }
    static V_INLINE Floats add(const Floats& a, const Floats& b) {
        Floats out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vaddq_f32(a.v[i], b.v[i]);
        return out;
    }
    static V_INLINE Floats mul(const Floats& a, const Floats& b) {
        Floats out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vmulq_f32(a.v[i], b.v[i]);
        return out;
    }
    static V_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
        Floats out;
        V_UNROLL
        for (int i = 0; i < 4; ++i) out.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
        return out;
    }

    static V_INLINE uint32_t largest_magnitude_bits(const Floats& a, const Floats& b) {
        const uint32x4_t mask = vdupq_n_u32(0x7fffffffu);
        uint32x4_t largest = vdupq_n_u32(0);
        V_UNROLL
        for (int i = 0; i < 4; ++i) {
            largest = vmaxq_u32(largest, vandq_u32(vreinterpretq_u32_f32(a.v[i]), mask));
            largest = vmaxq_u32(largest, vandq_u32(vreinterpretq_u32_f32(b.v[i]), mask));
        }
        return vmaxvq_u32(largest);
    }
    static V_INLINE int32_t store_rounded(const Floats& a, int8_t* out) {
        const int32x4_t q[4] = {vcvtnq_s32_f32(a.v[0]), vcvtnq_s32_f32(a.v[1]), vcvtnq_s32_f32(a.v[2]), vcvtnq_s32_f32(a.v[3])};
        const int16x8_t low = vcombine_s16(vmovn_s32(q[0]), vmovn_s32(q[1]));
        const int16x8_t high = vcombine_s16(vmovn_s32(q[2]), vmovn_s32(q[3]));
        vst1q_s8(out, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
        return vaddvq_s32(vaddq_s32(vaddq_s32(q[0], q[1]), vaddq_s32(q[2], q[3])));
    }
};
