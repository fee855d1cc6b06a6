#include "recurrent_kernels.h"

namespace octavo {

const RecurrentKernels& recurrent_kernels() { return OCTAVO_ACTIVE_KERNELS(recurrent_kernels); }

}  // namespace octavo
