#pragma once
#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>

namespace octavo {

/// What the processor has and the system saves, read from the processor itself: `__builtin_cpu_supports` needs a runtime library that
/// asked it before, which not every compiler links. Bits are those of Intel's manual, volume 2A, CPUID.
struct X86Features {
    bool avx2 = false;
    bool avx512 = false;
    bool avx512_bf16 = false;
    bool amx_int8 = false;

    X86Features() {
        uint32_t a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        constexpr uint32_t kFma = 1u << 12, kOsSaves = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
        constexpr uint32_t kNeeded = kFma | kOsSaves | kAvx | kF16c;
        if ((c & kNeeded) != kNeeded) return;
        const uint64_t saved = saved_state();
        constexpr uint64_t kYmm = 0x6, kZmm = 0xe6;
        if ((saved & kYmm) != kYmm || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
        avx2 = (b & 1u << 5) != 0;
        constexpr uint32_t kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31, kVnni = 1u << 11;
        constexpr uint32_t kAll = kF | kDq | kBw | kVl;
        avx512 = (saved & kZmm) == kZmm && (b & kAll) == kAll && (c & kVnni) != 0;
        constexpr uint32_t kAmx = 1u << 24 | 1u << 25;
        constexpr uint64_t kTiles = 0x60000;
        amx_int8 = avx512 && (saved & kTiles) == kTiles && (d & kAmx) == kAmx;
        avx512_bf16 = avx512 && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5) != 0;
    }

private:
    /// XCR0: the registers that the system saves when it switches threads.
    static uint64_t saved_state() {
        uint32_t low, high;
        asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return static_cast<uint64_t>(high) << 32 | low;
    }
};

inline const X86Features& x86_features() {
    static const X86Features features;
    return features;
}

}  // namespace octavo
#endif
