#include "../../simd/avx2.h"

#include "recurrent_table.h"

namespace octavo {

const RecurrentKernels recurrent_kernels_avx2 = make_recurrent_table();

}  // namespace octavo
