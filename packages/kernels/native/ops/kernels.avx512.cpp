#include "../simd/avx512.h"

#include "kernel_table.h"

namespace octavo {

const OpKernels op_kernels_avx512 = make_kernel_table();

}  // namespace octavo
