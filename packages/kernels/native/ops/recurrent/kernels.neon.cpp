#include "../../simd/neon.h"

#include "recurrent_table.h"

namespace octavo {

const RecurrentKernels recurrent_kernels_neon = make_recurrent_table();

}  // namespace octavo
