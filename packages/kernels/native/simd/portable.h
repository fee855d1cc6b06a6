#pragma once
#include <cstdint>
#include <cstring>

namespace octavo {

// Vectors of 128 bits, which every machine has, in the compilers' own notation: for code that is not compiled once for each
// instruction set. Packing is, since it moves bytes and is bound by memory. `static` for the reason that half.h gives.

using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Halves8 = uint16_t __attribute__((vector_size(16)));
using Words4 = uint32_t __attribute__((vector_size(16)));
using Longs2 = uint64_t __attribute__((vector_size(16)));

#if defined(__clang__)
#define OCTAVO_SHUFFLE(Vector, Element, a, b, ...) (Vector) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define OCTAVO_SHUFFLE(Vector, Element, a, b, ...) \
    __builtin_shuffle(a, b, (Element __attribute__((vector_size(16)))){__VA_ARGS__})
#endif

template <class T>
static inline T load_as(const uint8_t* from) {
    T vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <class T>
static inline void store(uint8_t* to, const T& vector) {
    std::memcpy(to, &vector, sizeof vector);
}

static inline Bytes16 bytes_of(uint8_t value) { return Bytes16{} + value; }

/// Bits [shift, shift + 8) of each byte, zeros shifted in, under `mask`; `mask` may not ask for bits of the neighbour.
static inline Bytes16 field(Bytes16 bytes, int shift, uint8_t mask) {
    return reinterpret_cast<Bytes16>(reinterpret_cast<Halves8>(bytes) >> shift) & bytes_of(mask);
}
static inline Bytes16 raised(Bytes16 bytes, int shift, uint8_t mask) {
    return reinterpret_cast<Bytes16>(reinterpret_cast<Halves8>(bytes) << shift) & bytes_of(mask);
}

static inline Bytes16 interleave_low(Bytes16 a, Bytes16 b) {
    return OCTAVO_SHUFFLE(Bytes16, uint8_t, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline Bytes16 interleave_high(Bytes16 a, Bytes16 b) {
    return OCTAVO_SHUFFLE(Bytes16, uint8_t, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
static inline Halves8 even_halves(Words4 a, Words4 b) {
    return OCTAVO_SHUFFLE(Halves8, uint16_t, reinterpret_cast<Halves8>(a), reinterpret_cast<Halves8>(b), 0, 2, 4, 6, 8, 10, 12, 14);
}
static inline Halves8 odd_halves(Words4 a, Words4 b) {
    return OCTAVO_SHUFFLE(Halves8, uint16_t, reinterpret_cast<Halves8>(a), reinterpret_cast<Halves8>(b), 1, 3, 5, 7, 9, 11, 13, 15);
}

}  // namespace octavo
