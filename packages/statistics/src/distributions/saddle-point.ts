/**
 * Loader's saddle-point form of binomial and Poisson terms (Loader 2000, "Fast and accurate computation of binomial
 * probabilities"): differences of logarithms of huge factorials would lose digits, deviances do not. Counts may be
 * fractional, which gives the powers in front of the incomplete beta and gamma functions.
 */

const stirlingSeries = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360_360, 1 / 156] as const;

/** ln Gamma(n + 1) - (n + 1/2) ln n + n - ln(2 pi)/2: what Stirling's formula leaves out. n > 0. */
export function stirlingError(n: number): number {
  // Gamma(n + 1) = Gamma(n + 16) / ((n + 1) ... (n + 15)), where the series has converged.
  let shifted = n;
  let product = 1;
  while (shifted < 16) {
    shifted += 1;
    product *= shifted;
  }
  const inverse = 1 / shifted;
  const square = inverse * inverse;
  let series = 0;
  for (let i = stirlingSeries.length - 1; i >= 0; i--) series = series * square + stirlingSeries[i]!;
  series *= inverse;
  if (shifted === n) return series;
  return (
    series + (shifted + 0.5) * Math.log(shifted) - shifted - Math.log(product) - (n + 0.5) * Math.log(n) + n
  );
}

/** x ln(x / m) + m - x, without cancellation where x is near m. */
export function deviance(x: number, m: number): number {
  const v = (x - m) / (x + m);
  if (Math.abs(v) > 0.1) return x * Math.log(x / m) + m - x;
  let sum = (x - m) * v;
  let term = 2 * x * v;
  for (let j = 1; j < 1000; j++) {
    term *= v * v;
    const next = sum + term / (2 * j + 1);
    if (next === sum) return next;
    sum = next;
  }
  return sum;
}

/** x^n e^-x / Gamma(n + 1); n >= 0, x > 0. */
export function poissonTerm(n: number, x: number): number {
  if (n === 0) return Math.exp(-x);
  return Math.exp(-stirlingError(n) - deviance(n, x)) / Math.sqrt(2 * Math.PI * n);
}

/** Gamma(n + 1) / (Gamma(k + 1) Gamma(n - k + 1)) p^k q^(n - k) with q = 1 - p; 0 <= k <= n, p in (0, 1). */
export function binomialTerm(k: number, n: number, p: number, q: number): number {
  const rest = n - k;
  if (k === 0) return Math.exp(n * (p < 0.5 ? Math.log1p(-p) : Math.log(q)));
  if (rest === 0) return Math.exp(n * (q < 0.5 ? Math.log1p(-q) : Math.log(p)));
  const exponent =
    stirlingError(n) - stirlingError(k) - stirlingError(rest) - deviance(k, n * p) - deviance(rest, n * q);
  return Math.exp(exponent) * Math.sqrt(n / (2 * Math.PI * k * rest));
}
