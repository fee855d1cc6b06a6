#include "../simd/avx512.h"

#include "kernel_table.h"

namespace octavo {
extern const OpKernels kernels_avx512;
const OpKernels kernels_avx512 = make_kernel_table();
}  // namespace octavo
