#pragma once

// Functions of vectors; included after an instruction set's header.
namespace octavo {
namespace {

/// e^x with a relative error under 2e-7: Cody-Waite reduction by ln 2 and Cephes' polynomial for expf.
/// Exactly 0 below -87.33 (no subnormal results), saturated above 88.37, NaN for NaN, exactly 1 at 0.
inline Vec exponential(Vec x) {
    const Vec lowest = splat(-87.33f);
    const Vec bounded = minimum(splat(88.37f), maximum(lowest, x));
    const Vec n = round_to_even(bounded * splat(1.44269504088896341f));
    Vec r = multiply_add(n, splat(-0.693359375f), bounded);
    r = multiply_add(n, splat(2.12194440e-4f), r);
    Vec p = splat(1.9875691500e-4f);
    p = multiply_add(p, r, splat(1.3981999507e-3f));
    p = multiply_add(p, r, splat(8.3334519073e-3f));
    p = multiply_add(p, r, splat(4.1665795894e-2f));
    p = multiply_add(p, r, splat(1.6666665459e-1f));
    p = multiply_add(p, r, splat(5.0000001201e-1f));
    p = multiply_add(p, r * r, r) + splat(1.0f);
    return select(greater(lowest, x), zero(), scale_by_power(p, n));
}

/// tanh x, absolute error under 3e-7.
inline Vec hyperbolic_tangent(Vec x) {
    return splat(1.0f) - splat(2.0f) / (exponential(x + x) + splat(1.0f));
}

/// erfc x for x >= 0, relative error about 1.2e-7 plus that of exp(-x^2): the Chebyshev fit of Numerical Recipes, 6.2.
inline Vec complementary_error(Vec x) {
    const Vec t = splat(1.0f) / multiply_add(splat(0.5f), x, splat(1.0f));
    Vec p = splat(0.17087277f);
    p = multiply_add(p, t, splat(-0.82215223f));
    p = multiply_add(p, t, splat(1.48851587f));
    p = multiply_add(p, t, splat(-1.13520398f));
    p = multiply_add(p, t, splat(0.27886807f));
    p = multiply_add(p, t, splat(-0.18628806f));
    p = multiply_add(p, t, splat(0.09678418f));
    p = multiply_add(p, t, splat(0.37409196f));
    p = multiply_add(p, t, splat(1.00002368f));
    p = multiply_add(p, t, splat(-1.26551223f));
    return t * exponential(p - x * x);
}

inline Vec silu(Vec x) { return x / (splat(1.0f) + exponential(zero() - x)); }

inline Vec gelu(Vec x) {
    const Vec z = x * splat(0.70710678118654752f);
    const Lanes negative = greater(zero(), z);
    const Vec tail = complementary_error(select(negative, zero() - z, z)) * splat(0.5f);
    return x * select(negative, tail, splat(1.0f) - tail);
}

inline Vec gelu_tanh(Vec x) {
    const Vec inner = splat(0.79788456080286536f) * multiply_add(splat(0.044715f) * x * x, x, x);
    return x * splat(0.5f) * (splat(1.0f) + hyperbolic_tangent(inner));
}

}  // namespace
}  // namespace octavo
