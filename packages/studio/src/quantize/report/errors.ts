/** Error of a stretch of values; sums over stretches. */
export interface SquaredError {
  /** Squared distance from the original. */
  readonly distance: number;
  /** Sum of the original's squares. */
  readonly size: number;
}

export function squaredError(original: Float32Array, values: Float32Array): SquaredError {
  let distance = 0;
  let size = 0;
  for (let i = 0; i < original.length; i++) {
    const value = original[i]!;
    const gap = value - values[i]!;
    distance += gap * gap;
    size += value * value;
  }
  return { distance, size };
}

/** Squared distance relative to the original; 0 for an original that is all 0 and met. */
export function relativeError(parts: readonly SquaredError[]): number {
  const distance = parts.reduce((sum, part) => sum + part.distance, 0);
  return distance === 0 ? 0 : distance / parts.reduce((sum, part) => sum + part.size, 0);
}

/** Squared distance of two arrays relative to the first. */
export function weightError(original: Float32Array, values: Float32Array): number {
  return relativeError([squaredError(original, values)]);
}
