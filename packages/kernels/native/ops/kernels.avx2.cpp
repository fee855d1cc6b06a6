#include "../simd/avx2.h"

#include "kernel_table.h"

namespace octavo {
extern const OpKernels kernels_avx2;
const OpKernels kernels_avx2 = make_kernel_table();
}  // namespace octavo
