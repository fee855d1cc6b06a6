#pragma once
#include <cstdint>
#include <vector>

#include "weight_cases.h"

namespace octavo::test {

/// y = x * W^T in double precision, with activations rounded as the kernels round them (int8 per group of 32 columns for
/// quantised weights, bf16 for bf16 weights, not at all otherwise), and the sum of absolute products as error scale.
struct Reference {
    std::vector<double> y;
    std::vector<double> magnitude;
};

Reference reference_linear(const Sample& sample, const float* x, int64_t ldx, int64_t m);

/// The activations as rounded, [cols].
std::vector<double> rounded_activations(WeightType type, int64_t group, const float* x, int64_t cols);

}  // namespace octavo::test
