import type { Activation } from "@octavo/kernels";

/**
 * Error function complement by Chebyshev fitting with a relative error below 1.2e-7 (Numerical Recipes, section 6.2). Exponents are bounded
 * because WGSL leaves infinities open.
 */
const erfc = `
fn erfc_of(x: f32) -> f32 {
  let z = abs(x);
  let t = 1.0 / (1.0 + 0.5 * z);
  let series = t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 +
    t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
  let tail = t * exp(max(-87.0, -z * z - 1.26551223 + series));
  return select(2.0 - tail, tail, x >= 0.0);
}`;

const logistic = "fn logistic(x: f32) -> f32 { return 1.0 / (1.0 + exp(min(-x, 88.0))); }";

const bodies: Readonly<Record<Activation, string>> = {
  silu: "return g * logistic(g) * u;",
  sigmoid: "return logistic(g) * u;",
  identity: "return g * u;",
  relu: "return max(g, 0.0) * u;",
  relu_squared: "let positive = max(g, 0.0); return positive * positive * u;",
  tanh: "return tanh(clamp(g, -15.0, 15.0)) * u;",
  gelu: "return 0.5 * g * erfc_of(-g * 0.70710678118654752) * u;",
  gelu_tanh:
    "return 0.5 * g * (1.0 + tanh(clamp(0.79788456080286536 * (g + 0.044715 * g * g * g), -15.0, 15.0))) * u;",
  clamped_swiglu:
    "let bounded = min(g, 7.0); return bounded * logistic(1.702 * bounded) * (clamp(u, -7.0, 7.0) + 1.0);",
};

/** `gated(gate, up)`: the activation of the gate times up. */
export function gatedFunction(activation: Activation): string {
  return [
    logistic,
    ...(activation === "gelu" ? [erfc] : []),
    `fn gated(g: f32, u: f32) -> f32 { ${bodies[activation]} }`,
  ].join("\n");
}
