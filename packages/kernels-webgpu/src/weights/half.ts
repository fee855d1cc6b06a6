const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The nearest binary16, ties to even; what is too large becomes infinite. */
export function toHalfBits(value: number): number {
  float[0] = value;
  const pattern = bits[0] ?? 0;
  const sign = (pattern >>> 16) & 0x8000;
  const magnitude = pattern & 0x7fffffff;
  if (magnitude >= 0x47800000) return sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00);
  if (magnitude >= 0x38800000) {
    const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1) - 0x38000000;
    return sign | (rounded >>> 13);
  }
  // Below 2^-14: units of 2^-24.
  float[0] = Math.abs(value) * 2 ** 24;
  const scaled = float[0] ?? 0;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  return sign | (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor);
}

export function fromHalfBits(half: number): number {
  const exponent = (half >> 10) & 31;
  const mantissa = half & 1023;
  const magnitude =
    exponent === 31
      ? mantissa === 0
        ? Infinity
        : Number.NaN
      : exponent === 0
        ? mantissa * 2 ** -24
        : (1024 + mantissa) * 2 ** (exponent - 25);
  return (half & 0x8000) === 0 ? magnitude : -magnitude;
}

/** Whether a number survives as binary16. */
export function isHalf(value: number): boolean {
  return fromHalfBits(toHalfBits(value)) === value;
}

/** Two numbers in a word, the first lowest. */
export function halfPair(first: number, second: number): number {
  return (toHalfBits(first) | (toHalfBits(second) << 16)) >>> 0;
}
