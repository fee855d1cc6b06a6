// 16 lanes in two registers; included inside an anonymous namespace by files compiled for AVX2 with FMA and F16C.

struct V {
    /// VPMADDUBSW adds two products in 16 bits with saturation: 63 * 127 * 2 fits, 255 * 127 * 2 does not. 8-bit codes are
    /// therefore dotted as |u - 128| <= 128 times the activation with the sign moved over: 128 * 127 * 2 fits.
    static constexpr bool kCentredBytes = true;
    static constexpr int kTilePanels = 1;
    static constexpr int kTileRows = 2;
    static constexpr int kBlockGroups = 32;
    static constexpr int kStreamPanels = 1;
    static constexpr int kStreamRows = 2;
    static constexpr int kStreamGroups = 16;
    static constexpr int kMaxStreamRows = 2;
    static constexpr int kPrefetchBytes = 3072;
    static constexpr int kFloatTilePanels = 1;
    static constexpr int kFloatTileRows = 6;
    static constexpr int kFloatPrefetchBytes = 2048;

    struct Bytes {
        __m256i v[2];
    };
    using Ints = Bytes;
    struct Floats {
        __m256 v[2];
    };
    using Quad = __m256i;

    static V_INLINE __m256i load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static V_INLINE void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

    static V_INLINE Bytes load_bytes(const uint8_t* p) { return {{load(p), load(p + 32)}}; }
    static V_INLINE const Bytes& pinned(const Bytes& bytes) { return bytes; }
    static V_INLINE Bytes load_byte_codes(const uint8_t* p) {
        const __m256i flip = _mm256_set1_epi8(static_cast<char>(0x80));
        return {{_mm256_xor_si256(load(p), flip), _mm256_xor_si256(load(p + 32), flip)}};
    }
    static V_INLINE void store_bytes(uint8_t* p, Bytes bytes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bytes.v[0]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), bytes.v[1]);
    }

    template <int Shift, int Mask>
    static V_INLINE __m256i field(__m256i bytes) {
        const __m256i mask = _mm256_set1_epi8(static_cast<char>(Mask));
        if constexpr (Shift > 0) return _mm256_and_si256(_mm256_slli_epi16(bytes, Shift), mask);
        if constexpr (Shift < 0) return _mm256_and_si256(_mm256_srli_epi16(bytes, -Shift), mask);
        return _mm256_and_si256(bytes, mask);
    }
    template <int Shift, int Mask>
    static V_INLINE Bytes field(Bytes bytes) {
        return {{field<Shift, Mask>(bytes.v[0]), field<Shift, Mask>(bytes.v[1])}};
    }
    static V_INLINE Bytes merge(Bytes a, Bytes b) {
        return {{_mm256_or_si256(a.v[0], b.v[0]), _mm256_or_si256(a.v[1], b.v[1])}};
    }

    static V_INLINE Bytes look_up(Bytes codes, const uint8_t* table) {
        const __m128i flip = _mm_set1_epi8(static_cast<char>(0x80));
        const __m128i centred = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)), flip);
        const __m256i entries = _mm256_broadcastsi128_si256(centred);
        return {{_mm256_shuffle_epi8(entries, codes.v[0]), _mm256_shuffle_epi8(entries, codes.v[1])}};
    }

    static V_INLINE Quad load_quad(const int8_t* p) {
        int32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return _mm256_set1_epi32(quad);
    }
    /// As many pairs of products as 16 bits hold: 8 * 2 * 15 * 127, 4 * 2 * 31 * 127 and 2 * 2 * 63 * 127 are below 32768.
    template <int Bits>
    static constexpr int kRun = Bits <= 4 ? 8 : Bits == 5 ? 4 : Bits == 6 ? 2 : 1;
    template <int Bits>
    static V_INLINE __m256i dot(__m256i sum, __m256i w, Quad a) {
        const __m256i pairs = Bits == 8 ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w))
                                        : _mm256_maddubs_epi16(w, a);
        __m256i total = _mm256_add_epi16(sum, pairs);
        // GCC would add the products of a run up in a tree, which takes more registers than there are.
        asm("" : "+x"(total));
        return total;
    }
    template <int Bits>
    static V_INLINE Ints dot(Ints sum, Bytes w, Quad a) {
        return {{dot<Bits>(sum.v[0], w.v[0], a), dot<Bits>(sum.v[1], w.v[1], a)}};
    }
    static V_INLINE __m256i widen(__m256i sum, __m256i narrow) {
        return _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, _mm256_set1_epi16(1)));
    }
    static V_INLINE Ints widen(Ints sum, Ints narrow) {
        return {{widen(sum.v[0], narrow.v[0]), widen(sum.v[1], narrow.v[1])}};
    }

    static V_INLINE Ints zero_ints() { return {{_mm256_setzero_si256(), _mm256_setzero_si256()}}; }
    static V_INLINE Ints broadcast_int(int32_t value) {
        const __m256i lanes = _mm256_set1_epi32(value);
        return {{lanes, lanes}};
    }
    static V_INLINE Ints load_ints(const uint8_t* p) { return load_bytes(p); }

    static V_INLINE Floats to_floats(Ints a) { return {{_mm256_cvtepi32_ps(a.v[0]), _mm256_cvtepi32_ps(a.v[1])}}; }
    static V_INLINE Floats broadcast(float value) {
        const __m256 lanes = _mm256_set1_ps(value);
        return {{lanes, lanes}};
    }
    static V_INLINE Floats broadcast_f32(const uint8_t* p) {
        float value;
        std::memcpy(&value, p, sizeof value);
        return broadcast(value);
    }
    static V_INLINE Floats load_f32(const uint8_t* p) {
        const float* from = reinterpret_cast<const float*>(p);
        return {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}};
    }
    static V_INLINE __m128i load_half(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
    static V_INLINE __m128i load_quarter(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
    static V_INLINE Floats load_f16(const uint8_t* p) {
        return {{_mm256_cvtph_ps(load_half(p)), _mm256_cvtph_ps(load_half(p + 16))}};
    }
    static V_INLINE Floats load_u8(const uint8_t* p) {
        return to_floats({{_mm256_cvtepu8_epi32(load_quarter(p)), _mm256_cvtepu8_epi32(load_quarter(p + 8))}});
    }
    static V_INLINE Floats load_i8(const uint8_t* p) {
        return to_floats({{_mm256_cvtepi8_epi32(load_quarter(p)), _mm256_cvtepi8_epi32(load_quarter(p + 8))}});
    }
    template <bool High>
    static V_INLINE Floats load_nibbles(const uint8_t* p) {
        const __m128i bytes = load_half(p);
        const __m128i nibbles = _mm_and_si128(High ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15));
        return to_floats({{_mm256_cvtepu8_epi32(nibbles), _mm256_cvtepu8_epi32(_mm_srli_si128(nibbles, 8))}});
    }
    static V_INLINE Floats load_halved_powers(const uint8_t* p) {
        const __m128i bytes = _mm_subs_epu8(load_half(p), _mm_set1_epi8(1));
        return {{_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)), 23))}};
    }
    static V_INLINE void store_f32(float* p, Floats a) {
        _mm256_storeu_ps(p, a.v[0]);
        _mm256_storeu_ps(p + 8, a.v[1]);
    }
    static V_INLINE Floats even_bf16(Ints pairs) {
        return {{_mm256_castsi256_ps(_mm256_slli_epi32(pairs.v[0], 16)), _mm256_castsi256_ps(_mm256_slli_epi32(pairs.v[1], 16))}};
    }
    static V_INLINE Floats odd_bf16(Ints pairs) {
        const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
        return {{_mm256_castsi256_ps(_mm256_and_si256(pairs.v[0], mask)), _mm256_castsi256_ps(_mm256_and_si256(pairs.v[1], mask))}};
    }
    static V_INLINE Floats add(Floats a, Floats b) { return {{_mm256_add_ps(a.v[0], b.v[0]), _mm256_add_ps(a.v[1], b.v[1])}}; }
    static V_INLINE Floats mul(Floats a, Floats b) { return {{_mm256_mul_ps(a.v[0], b.v[0]), _mm256_mul_ps(a.v[1], b.v[1])}}; }
    static V_INLINE Floats fma(Floats a, Floats b, Floats c) {
        return {{_mm256_fmadd_ps(a.v[0], b.v[0], c.v[0]), _mm256_fmadd_ps(a.v[1], b.v[1], c.v[1])}};
    }

    static V_INLINE __m256i magnitudes(Floats a) {
        const __m256i mask = _mm256_set1_epi32(0x7fffffff);
        return _mm256_max_epu32(_mm256_and_si256(_mm256_castps_si256(a.v[0]), mask),
                                _mm256_and_si256(_mm256_castps_si256(a.v[1]), mask));
    }
    static V_INLINE uint32_t largest_magnitude_bits(Floats a, Floats b) {
        const __m256i eight = _mm256_max_epu32(magnitudes(a), magnitudes(b));
        __m128i four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
        four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
        four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
        return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
    }
    static V_INLINE int32_t store_rounded(Floats a, int8_t* out) {
        const __m256i low = _mm256_cvtps_epi32(a.v[0]);
        const __m256i high = _mm256_cvtps_epi32(a.v[1]);
        // Packing works within 128-bit halves; the permutation puts the quarters back in order.
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                         _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
        const __m256i eight = _mm256_add_epi32(low, high);
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
        return _mm_cvtsi128_si32(four);
    }
};
