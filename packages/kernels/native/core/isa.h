#pragma once

namespace octavo {

enum class Isa { scalar, neon, avx2, avx512 };

/// Best instruction set this machine and build support, or the one named by OCTAVO_ISA (scalar, neon, avx2, avx512) if supported.
/// avx512 implies F, BW, VL, DQ and VNNI, BF16 is asked for separately; neon implies ARMv8.2's dot products and f16.
Isa active_isa();
bool has_avx512_bf16();
const char* isa_name(Isa isa);

bool isa_supported(Isa isa);

/// Overrides active_isa() from now on; `bf16` false also hides AVX512-BF16. Tests alone use it: matrices packed before keep
/// the kernels they were packed for.
void set_isa_for_test(Isa isa, bool bf16);

// A table of kernels exists once for each instruction set, `name`_avx2 and so on, defined by files compiled for it.
#define OCTAVO_DECLARE_KERNELS(Table, name) \
    extern const Table name##_scalar, name##_neon, name##_avx2, name##_avx512, name##_avx512_bf16

// The one for active_isa().
#if defined(__x86_64__)
#define OCTAVO_ACTIVE_KERNELS(name)                                                                   \
    (active_isa() == Isa::avx512 ? (has_avx512_bf16() ? name##_avx512_bf16 : name##_avx512) \
     : active_isa() == Isa::avx2 ? name##_avx2                                                      \
                                 : name##_scalar)
#elif defined(__aarch64__)
#define OCTAVO_ACTIVE_KERNELS(name) (active_isa() == Isa::neon ? name##_neon : name##_scalar)
#else
#define OCTAVO_ACTIVE_KERNELS(name) name##_scalar
#endif

}  // namespace octavo
