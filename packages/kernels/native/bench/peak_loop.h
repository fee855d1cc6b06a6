#pragma once
#include <cstdint>

namespace octavo::test {

/// Enough chains to hide an instruction's latency on two ports, and few enough for sixteen registers.
constexpr int kChains = 12;

/// `step(sum)` on kChains independent sums, `rounds` times. The sums are variables of their own, since compilers keep an array
/// in memory; the empty asm hides from them that the steps could be taken together.
template <typename Register, typename Step, typename Total>
inline int32_t run_chains(int64_t rounds, Register zero, Step step, Total total) {
    Register a = zero, b = zero, c = zero, d = zero, e = zero, f = zero;
    Register g = zero, h = zero, i = zero, j = zero, k = zero, l = zero;
    for (int64_t round = 0; round < rounds; ++round) {
        a = step(a), b = step(b), c = step(c), d = step(d), e = step(e), f = step(f);
        g = step(g), h = step(h), i = step(i), j = step(j), k = step(k), l = step(l);
        asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(f));
        asm volatile("" : "+x"(g), "+x"(h), "+x"(i), "+x"(j), "+x"(k), "+x"(l));
    }
    const Register first = total(total(total(a, b), total(c, d)), total(e, f));
    const Register second = total(total(total(g, h), total(i, j)), total(k, l));
    const Register all = total(first, second);
    int32_t word;
    __builtin_memcpy(&word, &all, sizeof word);
    return word;
}

}  // namespace octavo::test
