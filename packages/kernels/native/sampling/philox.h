#pragma once
#include <cstdint>

namespace octavo {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a pure function of key and counter,
/// so that a draw depends on (seed, index) alone and never on what was drawn before.
struct PhiloxBlock {
    uint32_t words[4];
};

inline PhiloxBlock philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
    uint32_t c0 = static_cast<uint32_t>(counter_low);
    uint32_t c1 = static_cast<uint32_t>(counter_low >> 32);
    uint32_t c2 = static_cast<uint32_t>(counter_high);
    uint32_t c3 = static_cast<uint32_t>(counter_high >> 32);
    uint32_t k0 = static_cast<uint32_t>(key);
    uint32_t k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = uint64_t{0xD2511F53} * c0;
        const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
        c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<uint32_t>(p1);
        c3 = static_cast<uint32_t>(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

/// In [0, 1), 53 bits.
inline double uniform(uint64_t seed, uint64_t index) {
    const PhiloxBlock block = philox(seed, index, 0);
    const uint64_t bits = static_cast<uint64_t>(block.words[1]) << 32 | block.words[0];
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace octavo
