#include "kernels.h"

#include "../core/isa.h"

namespace octavo {

extern const OpKernels kernels_scalar;
#if defined(__x86_64__)
extern const OpKernels kernels_avx2;
extern const OpKernels kernels_avx512;
extern const OpKernels kernels_avx512_bf16;
#elif defined(__aarch64__)
extern const OpKernels kernels_neon;
#endif

const OpKernels& op_kernels() {
    switch (active_isa()) {
#if defined(__x86_64__)
        case Isa::avx512:
            return has_avx512_bf16() ? kernels_avx512_bf16 : kernels_avx512;
        case Isa::avx2:
            return kernels_avx2;
#elif defined(__aarch64__)
        case Isa::neon:
            return kernels_neon;
#endif
        default:
            return kernels_scalar;
    }
}

}  // namespace octavo
