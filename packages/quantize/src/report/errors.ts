/** Squared distance of two arrays relative to the first; 0 for an original that is all 0 and met. */
export function weightError(original: Float32Array, values: Float32Array): number {
  let distance = 0;
  let size = 0;
  for (let i = 0; i < original.length; i++) {
    const value = original[i]!;
    const gap = value - values[i]!;
    distance += gap * gap;
    size += value * value;
  }
  return distance === 0 ? 0 : distance / size;
}
