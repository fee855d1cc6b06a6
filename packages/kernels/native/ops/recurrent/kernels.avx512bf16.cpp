#include "../../simd/avx512.h"

#include "recurrent_table.h"

namespace octavo {

const RecurrentKernels recurrent_kernels_avx512_bf16 = make_recurrent_table();

}  // namespace octavo
