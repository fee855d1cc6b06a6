#include "reference.h"

#include <algorithm>
#include <cmath>

#include "../../core/half.h"

namespace octavo::test {

std::vector<double> rounded_activations(WeightType type, int64_t group, const float* x, int64_t cols) {
    std::vector<double> rounded(x, x + cols);
    if (type == WeightType::bf16 || is_codebook(type, group)) {
        for (double& value : rounded) value = bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
    }
    if (is_float(type) || is_codebook(type, group)) return rounded;
    // Beside weights with one scale a row, 128 columns share a scale of activations.
    const int64_t width = type == WeightType::int8 && group == cols ? 128 : 32;
    for (int64_t g = 0; g < cols; g += width) {
        const int64_t end = std::min(g + width, cols);
        float largest = 0;
        for (int64_t i = g; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
        if (largest < 1e-30f) {
            std::fill(rounded.begin() + g, rounded.begin() + end, 0.0);
            continue;
        }
        const float scale = largest / 127.0f;
        const float inverse = 127.0f / largest;
        for (int64_t i = g; i < end; ++i) {
            rounded[static_cast<size_t>(i)] = static_cast<double>(scale) * std::nearbyintf(x[i] * inverse);
        }
    }
    return rounded;
}

Reference reference_linear(const Sample& sample, const float* x, int64_t ldx, int64_t m) {
    Reference reference;
    for (int64_t row = 0; row < m; ++row) {
        const std::vector<double> a = rounded_activations(sample.type, sample.group, x + row * ldx, sample.cols);
        for (int64_t r = 0; r < sample.rows; ++r) {
            const float* w = sample.weights.data() + r * sample.cols;
            double sum = 0;
            double magnitude = 0;
            for (int64_t c = 0; c < sample.cols; ++c) {
                const double product = static_cast<double>(w[c]) * a[static_cast<size_t>(c)];
                sum += product;
                magnitude += std::fabs(product);
            }
            reference.y.push_back(sum);
            reference.magnitude.push_back(magnitude);
        }
    }
    return reference;
}

}  // namespace octavo::test
