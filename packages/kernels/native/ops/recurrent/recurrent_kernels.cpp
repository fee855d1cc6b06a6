#include "recurrent_kernels.h"

namespace octavo {

const RecurrentKernels& recurrent_kernels() { return OCTAVO_KERNELS_OF(kernel_path(KernelKind::ops), recurrent_kernels); }

}  // namespace octavo
