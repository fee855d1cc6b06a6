/** Distribution function of the standard normal, to about 1e-7 (Abramowitz and Stegun 7.1.26). */
export function normalCdf(x: number): number {
  const t = 1 / (1 + (0.327_591_1 * Math.abs(x)) / Math.SQRT2);
  const series =
    ((((1.061_405_429 * t - 1.453_152_027) * t + 1.421_413_741) * t - 0.284_496_736) * t + 0.254_829_592) * t;
  const tail = (series * Math.exp((-x * x) / 2)) / 2;
  return x > 0 ? 1 - tail : tail;
}

/** Its inverse, by bisection; p in (0, 1). */
export function normalQuantile(p: number): number {
  let low = -9;
  let high = 9;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (normalCdf(middle) < p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
