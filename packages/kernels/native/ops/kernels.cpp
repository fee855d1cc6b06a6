#include "kernels.h"

#include "../core/isa.h"

namespace octavo {

const OpKernels& op_kernels() { return OCTAVO_KERNELS_OF(kernel_path(KernelKind::ops), op_kernels); }

}  // namespace octavo
