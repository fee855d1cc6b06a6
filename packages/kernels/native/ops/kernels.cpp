#include "kernels.h"

#include "../core/isa.h"

namespace octavo {

const OpKernels& op_kernels() { return OCTAVO_ACTIVE_KERNELS(op_kernels); }

}  // namespace octavo
