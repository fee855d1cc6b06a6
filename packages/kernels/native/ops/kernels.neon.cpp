#include "../simd/neon.h"

#include "kernel_table.h"

namespace octavo {
extern const OpKernels kernels_neon;
const OpKernels kernels_neon = make_kernel_table();
}  // namespace octavo
