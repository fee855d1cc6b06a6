#include "isa.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "x86_features.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace octavo {

namespace {

constexpr Isa kBestFirst[] = {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar};

bool machine_has_avx512_bf16() {
#if defined(__x86_64__)
    return x86_features().avx512_bf16;
#else
    return false;
#endif
}

#if defined(__aarch64__)
bool machine_has_dot_products() {
#if defined(__linux__)
    const unsigned long features = getauxval(AT_HWCAP);
    return (features & HWCAP_ASIMDDP) != 0 && (features & HWCAP_ASIMDHP) != 0;
#else
    return true;
#endif
}
#endif

Isa detect_isa() {
    if (const char* wanted = std::getenv("OCTAVO_ISA")) {
        for (const Isa isa : kBestFirst) {
            if (std::strcmp(wanted, isa_name(isa)) == 0 && isa_supported(isa)) return isa;
        }
    }
    for (const Isa isa : kBestFirst) {
        if (isa_supported(isa)) return isa;
    }
    return Isa::scalar;
}

std::atomic<Isa>& current_isa() {
    static std::atomic<Isa> isa{detect_isa()};
    return isa;
}

std::atomic<bool>& current_bf16() {
    static std::atomic<bool> bf16{machine_has_avx512_bf16()};
    return bf16;
}

}  // namespace

bool isa_supported(Isa isa) {
    switch (isa) {
        case Isa::scalar:
            return true;
#if defined(__x86_64__)
        case Isa::avx2:
            return x86_features().avx2;
        case Isa::avx512:
            return x86_features().avx512;
#elif defined(__aarch64__)
        case Isa::neon:
            return machine_has_dot_products();
#endif
        default:
            return false;
    }
}

Isa active_isa() { return current_isa().load(std::memory_order_relaxed); }

bool has_avx512_bf16() { return active_isa() == Isa::avx512 && current_bf16().load(std::memory_order_relaxed); }

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::scalar:
            return "scalar";
        case Isa::neon:
            return "neon";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
    }
    return "unknown";
}

void set_isa_for_test(Isa isa, bool bf16) {
    if (!isa_supported(isa)) return;
    current_isa().store(isa, std::memory_order_relaxed);
    current_bf16().store(bf16 && machine_has_avx512_bf16(), std::memory_order_relaxed);
}

}  // namespace octavo
