#include "../simd/neon.h"

#include "kernel_table.h"

namespace octavo {

const OpKernels op_kernels_neon = make_kernel_table();

}  // namespace octavo
