/**
 * Where an increasing function is 0, to the last digits of x. From `start` the bracket is doubled until the sign changes,
 * then halved or cut by inverse quadratic interpolation (Chandrupatla 1997).
 */
export function findRoot(f: (x: number) => number, start: number): number {
  let width = 1;
  let low = start - width;
  let high = start + width;
  let fLow = f(low);
  let fHigh = f(high);
  for (; fLow > 0 && width < 1e8; width *= 2) {
    high = low;
    fHigh = fLow;
    low -= 2 * width;
    fLow = f(low);
  }
  for (; fHigh < 0 && width < 1e8; width *= 2) {
    low = high;
    fLow = fHigh;
    high += 2 * width;
    fHigh = f(high);
  }
  return findRootBetween(f, low, high, fLow, fHigh);
}

/** The same in a bracket; `fLow` and `fHigh` have opposite signs (or one is 0). */
export function findRootBetween(
  f: (x: number) => number,
  low: number,
  high: number,
  fLow = f(low),
  fHigh = f(high),
): number {
  let [a, b, c] = [high, low, low];
  let [fa, fb, fc] = [fHigh, fLow, fLow];
  let share = 0.5;
  for (let step = 0; step < 200; step++) {
    const x = a + share * (b - a);
    const fx = f(x);
    if (Math.sign(fx) === Math.sign(fa)) {
      [c, fc] = [a, fa];
    } else {
      [c, fc] = [b, fb];
      [b, fb] = [a, fa];
    }
    [a, fa] = [x, fx];
    const best = Math.abs(fa) < Math.abs(fb) ? a : b;
    const limit = (2 * Number.EPSILON * Math.abs(best) + 1e-300) / Math.abs(b - a);
    if (limit > 0.5 || fa === 0) return fa === 0 ? a : best;
    const xi = (a - b) / (c - b);
    const phi = (fa - fb) / (fc - fb);
    share =
      phi * phi < xi && (1 - phi) * (1 - phi) < 1 - xi
        ? (fa / (fb - fa)) * (fc / (fb - fc)) + (((c - a) / (b - a)) * fa * fb) / ((fc - fa) * (fc - fb))
        : 0.5;
    share = Math.min(1 - limit, Math.max(limit, share));
  }
  return a;
}
