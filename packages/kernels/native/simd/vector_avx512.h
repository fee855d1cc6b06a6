// 16 lanes in one register; included inside an anonymous namespace by files compiled for AVX-512 with VNNI.

struct V {
    static constexpr bool kCentredBytes = false;
    static constexpr int kTilePanels = 2;
    static constexpr int kTileRows = 4;
    static constexpr int kBlockGroups = 16;
    static constexpr int kStreamPanels = 2;
    static constexpr int kStreamRows = 4;
    static constexpr int kStreamGroups = 16;
    static constexpr int kMaxStreamRows = 64;
    static constexpr int kPrefetchBytes = 9216;
    static constexpr int kFloatTilePanels = 4;
    static constexpr int kFloatTileRows = 6;
    static constexpr int kFloatPrefetchBytes = 2048;

    using Bytes = __m512i;
    using Ints = __m512i;
    using Floats = __m512;
    using Quad = __m512i;

    static V_INLINE void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

    static V_INLINE Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
    /// Keeps a vector in a register: GCC would rather load it again for each use, and loads are what the tiles run out of.
    static V_INLINE Bytes pinned(Bytes bytes) {
        asm("" : "+v"(bytes));
        return bytes;
    }
    static V_INLINE Bytes load_byte_codes(const uint8_t* p) { return load_bytes(p); }
    static V_INLINE void store_bytes(uint8_t* p, Bytes bytes) { _mm512_storeu_si512(p, bytes); }

    template <int Shift, int Mask>
    static V_INLINE Bytes field(Bytes bytes) {
        const __m512i mask = _mm512_set1_epi8(static_cast<char>(Mask));
        if constexpr (Shift > 0) return _mm512_and_si512(_mm512_slli_epi16(bytes, Shift), mask);
        if constexpr (Shift < 0) return _mm512_and_si512(_mm512_srli_epi16(bytes, -Shift), mask);
        return _mm512_and_si512(bytes, mask);
    }
    static V_INLINE Bytes merge(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }

    /// Entries of a table of sixteen, by codes below 16, as `load_byte_codes` would give them.
    static V_INLINE Bytes look_up(Bytes codes, const uint8_t* table) {
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))), codes);
    }

    static V_INLINE Quad load_quad(const int8_t* p) {
        int32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return _mm512_set1_epi32(quad);
    }
    template <int Bits>
    static V_INLINE Ints dot(Ints sum, Bytes w, Quad a) {
        return _mm512_dpbusd_epi32(sum, w, a);
    }

    template <int>
    static constexpr int kRun = 0;
    static V_INLINE Ints widen(Ints sum, Ints) { return sum; }

    static V_INLINE Ints zero_ints() { return _mm512_setzero_si512(); }
    static V_INLINE Ints broadcast_int(int32_t value) { return _mm512_set1_epi32(value); }
    static V_INLINE Ints load_ints(const uint8_t* p) { return _mm512_loadu_si512(p); }

    static V_INLINE Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
    static V_INLINE Floats broadcast(float value) { return _mm512_set1_ps(value); }
    static V_INLINE Floats broadcast_f32(const uint8_t* p) {
        float value;
        std::memcpy(&value, p, sizeof value);
        return _mm512_set1_ps(value);
    }
    static V_INLINE Floats load_f32(const uint8_t* p) { return _mm512_loadu_ps(p); }
    static V_INLINE Floats load_f16(const uint8_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static V_INLINE Floats load_u8(const uint8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static V_INLINE Floats load_i8(const uint8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    template <bool High>
    static V_INLINE Floats load_nibbles(const uint8_t* p) {
        const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        return _mm512_cvtepi32_ps(High ? _mm512_srli_epi32(bytes, 4) : _mm512_and_si512(bytes, _mm512_set1_epi32(15)));
    }
    /// 2^(e - 128) of bytes e, 0 where e is 0 or 1.
    static V_INLINE Floats load_halved_powers(const uint8_t* p) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_subs_epu8(bytes, _mm_set1_epi8(1))), 23));
    }
    static V_INLINE void store_f32(float* p, Floats a) { _mm512_storeu_ps(p, a); }
    static V_INLINE Floats even_bf16(Ints pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
    static V_INLINE Floats odd_bf16(Ints pairs) {
        return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
    }
    static V_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
    static V_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    static V_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

    static V_INLINE uint32_t largest_magnitude_bits(Floats a, Floats b) {
        const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
        return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), magnitude),
                                                        _mm512_and_si512(_mm512_castps_si512(b), magnitude)));
    }
    static V_INLINE int32_t store_rounded(Floats a, int8_t* out) {
        const __m512i rounded = _mm512_cvtps_epi32(a);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(rounded));
        return _mm512_reduce_add_epi32(rounded);
    }
};
