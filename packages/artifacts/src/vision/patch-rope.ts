/** Axes of a step: where a token stands along time, row and column. */
export const [rowAxis, columnAxis] = [1, 2] as const;

/** A rotation of patches: half of the pairs by one axis, half by the other, both with the same frequencies. */
export function patchRope(
  headDim: number,
  theta: number,
  [first, second]: readonly [number, number],
): {
  readonly inverseFrequencies: Float32Array;
  readonly attentionFactor: 1;
  readonly layout: "neox";
  readonly axes: Uint8Array;
} {
  const perAxis = headDim / 4;
  const pairs = Array.from({ length: 2 * perAxis }, (_, pair) => pair);
  return {
    inverseFrequencies: Float32Array.from(pairs, (pair) => theta ** (-(pair % perAxis) / perAxis)),
    attentionFactor: 1,
    layout: "neox",
    axes: Uint8Array.from(pairs, (pair) => (pair < perAxis ? first : second)),
  };
}
