#include "../simd/avx2.h"

#include "kernel_table.h"

namespace octavo {

const OpKernels op_kernels_avx2 = make_kernel_table();

}  // namespace octavo
