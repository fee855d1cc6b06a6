#pragma once

namespace octavo {

enum class Isa { scalar, neon, avx2, avx512 };

/// Best instruction set this machine and build support, or the one named by OCTAVO_ISA (scalar, neon, avx2, avx512) if supported.
/// avx512 implies F, BW, VL, DQ and VNNI, BF16 is asked for separately; neon implies ARMv8.2's dot products and f16.
Isa active_isa();
bool has_avx512_bf16();
const char* isa_name(Isa isa);

bool isa_supported(Isa isa);

/// Overrides active_isa() and all paths from now on; `bf16` false also hides AVX512-BF16 and AMX. Tests alone use it: matrices packed
/// before keep the kernels they were packed for.
void set_isa_for_test(Isa isa, bool bf16);

/// What is computed by tables of kernels of its own: weights in f32 and f16, in bf16, in integers with scales, in codebooks; and all
/// ops but products with weights.
enum class KernelKind { f32, bf16, quantised, codebook, ops };
constexpr KernelKind kKernelKinds[] = {KernelKind::f32, KernelKind::bf16, KernelKind::quantised, KernelKind::codebook, KernelKind::ops};
constexpr const char* kKernelKindNames = "f32, bf16, quantised, codebook, ops";

/// The instruction set of a table. avx512_amx, AVX-512 with tiles of AMX-INT8, is one of `quantised` alone, with the bits of avx512.
enum class KernelPath { scalar, neon, avx2, avx512, avx512_bf16, avx512_amx };
constexpr const char* kKernelPathNames = "scalar, neon, avx2, avx512, avx512_bf16, avx512_amx";

/// The path of active_isa() for all kinds, unless set_kernel_path chose another.
KernelPath kernel_path(KernelKind kind);
/// False, and nothing changes, where the machine does not have it. Only before anything is computed or packed.
bool set_kernel_path(KernelKind kind, KernelPath path);

// A table of kernels exists once for each path, `name`_avx2 and so on, defined by files compiled for it.
#define OCTAVO_DECLARE_KERNELS(Table, name) \
    extern const Table name##_scalar, name##_neon, name##_avx2, name##_avx512, name##_avx512_bf16

#if defined(__x86_64__)
#define OCTAVO_KERNELS_OF(path, name)                            \
    ((path) == KernelPath::avx512_bf16 ? name##_avx512_bf16 \
     : (path) == KernelPath::avx512    ? name##_avx512      \
     : (path) == KernelPath::avx2      ? name##_avx2        \
                                       : name##_scalar)
#elif defined(__aarch64__)
#define OCTAVO_KERNELS_OF(path, name) ((path) == KernelPath::neon ? name##_neon : name##_scalar)
#else
#define OCTAVO_KERNELS_OF(path, name) name##_scalar
#endif

}  // namespace octavo
