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

inline Vec silu(Vec x) { return x / (splat(1.0f) + exponential(zero() - x)); }

/// c[0] + c[1] x + ... + c[5] x^5
inline Vec polynomial(const float (&c)[6], Vec x) {
    Vec sum = splat(c[5]);
    for (int i = 4; i >= 0; --i) sum = multiply_add(sum, x, splat(c[i]));
    return sum;
}

/// x times the normal distribution, whose distance from 1/2 is x P(x^2) / Q(x^2) within 1e-8 below 5.6 (a fit by weighted least squares,
/// repeated towards the least largest error) and 1/2 beyond, where it is that within 1.1e-8. Off by 2.4e-7 of the larger of 1 and |x|.
inline Vec gelu(Vec x) {
    static constexpr float above[6] = {0.398942232f, 0.0343760438f, 0.00470725494f, 0.000173849927f, 6.35651304e-6f, 2.21452936e-8f};
    static constexpr float below[6] = {1.0f, 0.252833664f, 0.0289400481f, 0.00191297382f, 7.51015905e-5f, 1.18020989e-6f};
    const Vec bound = splat(5.6f);
    const Vec half = splat(0.5f);
    const Vec near = minimum(bound, maximum(zero() - bound, x));
    const Vec square = near * near;
    Vec distance = near * polynomial(above, square) / polynomial(below, square);
    distance = select(greater(bound, x), distance, half);
    distance = select(greater(x, zero() - bound), distance, zero() - half);
    return x * (half + distance);
}

inline Vec gelu_tanh(Vec x) {
    const Vec inner = splat(0.79788456080286536f) * multiply_add(splat(0.044715f) * x * x, x, x);
    return x * splat(0.5f) * (splat(1.0f) + hyperbolic_tangent(inner));
}

}  // namespace
}  // namespace octavo
