#include "isa.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "x86_features.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
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

/// AMX-INT8, once the system lets this process use its registers.
bool machine_has_amx() {
#if defined(__x86_64__) && defined(__linux__)
    // Linux' Documentation/arch/x86/xstate.rst
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    static const bool has = x86_features().amx_int8 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
    return has;
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

KernelPath best_path(Isa isa, bool bf16) {
    switch (isa) {
        case Isa::neon:
            return KernelPath::neon;
        case Isa::avx2:
            return KernelPath::avx2;
        case Isa::avx512:
            return bf16 && machine_has_avx512_bf16() ? KernelPath::avx512_bf16 : KernelPath::avx512;
        case Isa::scalar:
            break;
    }
    return KernelPath::scalar;
}

Isa isa_of(KernelPath path) {
    switch (path) {
        case KernelPath::neon:
            return Isa::neon;
        case KernelPath::avx2:
            return Isa::avx2;
        case KernelPath::avx512:
        case KernelPath::avx512_bf16:
        case KernelPath::avx512_amx:
            return Isa::avx512;
        case KernelPath::scalar:
            break;
    }
    return Isa::scalar;
}

constexpr size_t kNumKernelKinds = sizeof(kKernelKinds) / sizeof(kKernelKinds[0]);

struct Paths {
    std::atomic<KernelPath> best;
    std::atomic<KernelPath> of_kind[kNumKernelKinds];

    Paths() { set(detect_isa(), true); }
    /// `extensions`: AVX512-BF16 and AMX as well.
    void set(Isa isa, bool extensions) {
        const KernelPath path = best_path(isa, extensions);
        best.store(path, std::memory_order_relaxed);
        for (std::atomic<KernelPath>& kind : of_kind) kind.store(path, std::memory_order_relaxed);
        if (isa == Isa::avx512 && extensions && machine_has_amx()) {
            of_kind[static_cast<size_t>(KernelKind::quantised)].store(KernelPath::avx512_amx, std::memory_order_relaxed);
        }
    }
};

Paths& paths() {
    static Paths all;
    return all;
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

Isa active_isa() { return isa_of(paths().best.load(std::memory_order_relaxed)); }

bool has_avx512_bf16() { return paths().best.load(std::memory_order_relaxed) == KernelPath::avx512_bf16; }

KernelPath kernel_path(KernelKind kind) { return paths().of_kind[static_cast<size_t>(kind)].load(std::memory_order_relaxed); }

bool set_kernel_path(KernelKind kind, KernelPath path) {
    if (!isa_supported(isa_of(path))) return false;
    if (path == KernelPath::avx512_bf16 && !machine_has_avx512_bf16()) return false;
    if (path == KernelPath::avx512_amx && (kind != KernelKind::quantised || !machine_has_amx())) return false;
    paths().of_kind[static_cast<size_t>(kind)].store(path, std::memory_order_relaxed);
    return true;
}

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
    if (isa_supported(isa)) paths().set(isa, bf16);
}

}  // namespace octavo
