#include "../simd/scalar.h"

#include "kernel_table.h"

namespace octavo {

const OpKernels op_kernels_scalar = make_kernel_table();

}  // namespace octavo
