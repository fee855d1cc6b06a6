#include "../../simd/scalar.h"

#include "recurrent_table.h"

namespace octavo {

const RecurrentKernels recurrent_kernels_scalar = make_recurrent_table();

}  // namespace octavo
