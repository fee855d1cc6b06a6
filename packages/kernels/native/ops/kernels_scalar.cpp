#include "../simd/scalar.h"

#include "kernel_table.h"

namespace octavo {
extern const OpKernels kernels_scalar;
const OpKernels kernels_scalar = make_kernel_table();
}  // namespace octavo
