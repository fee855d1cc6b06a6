#pragma once
#include "attention_kernel.h"
#include "logit_kernels.h"

// Included last by each instruction-set file, which names the table it fills.
namespace {

constexpr octavo::OpKernels make_kernel_table() {
    return {rms_norm,       rope,             gated_activation, add,           scale,        soft_cap, attend,
            largest_of_row, sum_exponentials, weigh,            count_greater, find_greater, find,     collect};
}

}  // namespace
