#pragma once
#include "kernels.h"
#include "../simd/math.h"

namespace octavo {
namespace {

inline Vec load_up_to(const float* p, int64_t count) {
    return count >= Vec::width ? load(p) : load_some(p, static_cast<int>(count));
}
inline void store_up_to(float* p, Vec a, int64_t count) {
    if (count >= Vec::width) {
        store(p, a);
    } else {
        store_some(p, a, static_cast<int>(count));
    }
}

inline float sum_of_squares(const float* x, int64_t width) {
    constexpr int64_t w = Vec::width;
    Vec total[4] = {zero(), zero(), zero(), zero()};
    int64_t i = 0;
    for (; i + 4 * w <= width; i += 4 * w) {
        for (int64_t k = 0; k < 4; k++) {
            const Vec a = load(x + i + k * w);
            total[k] = multiply_add(a, a, total[k]);
        }
    }
    for (; i < width; i += w) {
        const Vec a = load_up_to(x + i, width - i);
        total[0] = multiply_add(a, a, total[0]);
    }
    return sum((total[0] + total[1]) + (total[2] + total[3]));
}

void add(const float* in, float* out, int64_t width) {
    for (int64_t i = 0; i < width; i += Vec::width) {
        store_up_to(out + i, load_up_to(out + i, width - i) + load_up_to(in + i, width - i), width - i);
    }
}

void add_scaled(const float* in, float factor, float* out, int64_t width) {
    const Vec f = splat(factor);
    for (int64_t i = 0; i < width; i += Vec::width) {
        const int64_t left = width - i;
        store_up_to(out + i, load_up_to(out + i, left) + load_up_to(in + i, left) * f, left);
    }
}

void scale(float* on, float factor, int64_t width) {
    const Vec f = splat(factor);
    for (int64_t i = 0; i < width; i += Vec::width) store_up_to(on + i, load_up_to(on + i, width - i) * f, width - i);
}

void soft_cap(float* on, float cap, int64_t width) {
    const Vec limit = splat(cap);
    for (int64_t i = 0; i < width; i += Vec::width) {
        store_up_to(on + i, limit * hyperbolic_tangent(load_up_to(on + i, width - i) / limit), width - i);
    }
}

void rms_norm(const float* in, const float* weight, float weight_offset, float eps, int64_t width, int64_t group,
              int64_t weight_stride, float* residual, float* out) {
    if (residual != nullptr) {
        add(in, residual, width);
        in = residual;
    }
    const Vec offset = splat(weight_offset);
    for (int64_t begin = 0; begin < width; begin += group) {
        const float* x = in + begin;
        const float* own = weight + begin / group * weight_stride;
        const float mean = sum_of_squares(x, group) / static_cast<float>(group);
        const Vec factor = splat(1.0f / __builtin_sqrtf(mean + eps));
        for (int64_t i = 0; i < group; i += Vec::width) {
            const int64_t left = group - i;
            const Vec normalised = load_up_to(x + i, left) * factor;
            store_up_to(out + begin + i, normalised * (load_up_to(own + i, left) + offset), left);
        }
    }
}

inline float sum_of(const float* x, int64_t width) {
    Vec total = zero();
    for (int64_t i = 0; i < width; i += Vec::width) total = total + load_up_to(x + i, width - i);
    return sum(total);
}

void layer_norm(const float* in, const float* weight, const float* bias, float eps, int64_t width, float* residual, float* out) {
    if (residual != nullptr) {
        add(in, residual, width);
        in = residual;
    }
    const Vec mean = splat(sum_of(in, width) / static_cast<float>(width));
    for (int64_t i = 0; i < width; i += Vec::width) store_up_to(out + i, load_up_to(in + i, width - i) - mean, width - i);
    const float variance = sum_of_squares(out, width) / static_cast<float>(width);
    const Vec factor = splat(1.0f / __builtin_sqrtf(variance + eps));
    for (int64_t i = 0; i < width; i += Vec::width) {
        const int64_t left = width - i;
        Vec normalised = load_up_to(out + i, left) * factor * load_up_to(weight + i, left);
        if (bias != nullptr) normalised = normalised + load_up_to(bias + i, left);
        store_up_to(out + i, normalised, left);
    }
}

void clamp(float* on, float least, float most, int64_t width) {
    const Vec high = splat(most);
    const Vec low = splat(least);
    for (int64_t i = 0; i < width; i += Vec::width) {
        // The bound comes first, so that NaN passes through.
        store_up_to(on + i, maximum(low, minimum(high, load_up_to(on + i, width - i))), width - i);
    }
}

void rope(float* on, int64_t num_heads, int64_t head_dim, const float* cos, const float* sin, int64_t pairs,
          RopeLayout layout) {
    for (int64_t head = 0; head < num_heads; head++) {
        float* x = on + head * head_dim;
        if (layout == RopeLayout::neox) {
            for (int64_t i = 0; i < pairs; i += Vec::width) {
                const int64_t left = pairs - i;
                const Vec a = load_up_to(x + i, left);
                const Vec b = load_up_to(x + pairs + i, left);
                const Vec c = load_up_to(cos + i, left);
                const Vec s = load_up_to(sin + i, left);
                store_up_to(x + i, a * c - b * s, left);
                store_up_to(x + pairs + i, b * c + a * s, left);
            }
        } else {
            int64_t i = 0;
            for (; i + Vec::width <= pairs; i += Vec::width) {
                Vec a = load(x + 2 * i);
                Vec b = load(x + 2 * i + Vec::width);
                deinterleave(a, b);
                const Vec c = load(cos + i);
                const Vec s = load(sin + i);
                Vec first = a * c - b * s;
                Vec second = b * c + a * s;
                interleave(first, second);
                store(x + 2 * i, first);
                store(x + 2 * i + Vec::width, second);
            }
            for (; i < pairs; i++) {
                const float a = x[2 * i];
                const float b = x[2 * i + 1];
                x[2 * i] = a * cos[i] - b * sin[i];
                x[2 * i + 1] = b * cos[i] + a * sin[i];
            }
        }
    }
}

template <typename F>
void gate(F&& activation, const float* gate, const float* up, float* out, int64_t width) {
    for (int64_t i = 0; i < width; i += Vec::width) {
        const int64_t left = width - i;
        store_up_to(out + i, activation(load_up_to(gate + i, left)) * load_up_to(up + i, left), left);
    }
}

/// GPT-OSS: g sigmoid(1.702 g) (u + 1) with g = min(gate, 7) and u = up within [-7, 7].
void clamped_swiglu(const float* in, const float* up, float* out, int64_t width) {
    const Vec limit = splat(7.0f);
    const Vec one = splat(1.0f);
    for (int64_t i = 0; i < width; i += Vec::width) {
        const int64_t left = width - i;
        // The bound comes first, so that NaN passes through.
        const Vec g = minimum(limit, load_up_to(in + i, left));
        const Vec u = maximum(zero() - limit, minimum(limit, load_up_to(up + i, left)));
        store_up_to(out + i, g / (one + exponential(g * splat(-1.702f))) * (u + one), left);
    }
}

void gated_activation(Activation activation, const float* in, const float* up, float* out, int64_t width) {
    switch (activation) {
        case Activation::silu:
            return gate([](Vec x) { return silu(x); }, in, up, out, width);
        case Activation::gelu:
            return gate([](Vec x) { return gelu(x); }, in, up, out, width);
        case Activation::gelu_tanh:
            return gate([](Vec x) { return gelu_tanh(x); }, in, up, out, width);
        case Activation::clamped_swiglu:
            return clamped_swiglu(in, up, out, width);
        case Activation::sigmoid:
            return gate([](Vec x) { return splat(1.0f) / (splat(1.0f) + exponential(zero() - x)); }, in, up, out, width);
        case Activation::identity:
            return gate([](Vec x) { return x; }, in, up, out, width);
        case Activation::relu_squared:
            return gate([](Vec x) { x = maximum(zero(), x); return x * x; }, in, up, out, width);
        case Activation::tanh:
            return gate([](Vec x) { return hyperbolic_tangent(x); }, in, up, out, width);
        case Activation::relu:
            // The bound comes first, so that NaN passes through.
            return gate([](Vec x) { return maximum(zero(), x); }, in, up, out, width);
    }
}

}  // namespace
}  // namespace octavo
