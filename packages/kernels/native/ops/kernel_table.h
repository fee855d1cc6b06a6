#pragma once
#include "attention/attention_kernel.h"
#include "logit_kernels.h"
#include "attention/store_kernel.h"

// Included last by each instruction-set file, which names the table it fills.
namespace octavo {
namespace {

constexpr OpKernels make_kernel_table(decltype(OpKernels::attend) attend = attend_floats,
                                              decltype(OpKernels::pack_query) pack_query = copy_query,
                                              decltype(OpKernels::store_kv) store = store_kv) {
    return {rms_norm, layer_norm, rope,       gated_activation, add,  add_scaled,     scale,            clamp,
            soft_cap, store,      pack_query, attend,           fold, largest_of_row, sum_exponentials, weigh,
            count_greater, find_greater, find, collect};
}

}  // namespace
}  // namespace octavo
