// What AVX-512 adds to coded_panel.h; included before it, inside an anonymous namespace.

inline void widen_halves(const uint16_t* halves, float* out) {
    _mm512_storeu_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves))));
}

struct Table {
    __m512 entries;
    explicit Table(const float* table) : entries(_mm512_loadu_ps(table)) {}

    void lookup(const uint8_t* codes, float* even, float* odd) const {
        // VPERMPS looks at the low four bits of an index alone.
        const __m512i index = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
        _mm512_storeu_ps(even, _mm512_permutexvar_ps(index, entries));
        _mm512_storeu_ps(odd, _mm512_permutexvar_ps(_mm512_srli_epi32(index, 4), entries));
    }
};
