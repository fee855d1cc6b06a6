#include "../simd/avx512.h"

#include "attention/attention_bf16.h"
#include "kernel_table.h"

namespace octavo {

const OpKernels op_kernels_avx512_bf16 = make_kernel_table(attend_pairs, pack_query_pairs, store_kv_pairs);

}  // namespace octavo
