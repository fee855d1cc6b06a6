import { roundToHalf } from "./half.js";

/** A matrix as unsigned codes with a scale and a zero point per group of columns: w = (code - zero) * scale. */
export interface IntegerGroups {
  readonly rows: number;
  readonly cols: number;
  readonly bits: number;
  /** Columns of a group; column c belongs to group `groupOf[c]`, or c / groupSize. */
  readonly groupSize: number;
  readonly groupOf?: Int32Array;
  /** `[rows, cols]` */
  readonly codes: Uint8Array;
  /** `[rows, groups]`, values that f16 has. */
  readonly scales: Float32Array;
  /** `[rows, groups]` */
  readonly zeros: Uint8Array;
}

interface GroupRange {
  readonly scale: number;
  readonly zero: number;
}

/**
 * Scale and zero point of values from `low` to `high`, widened to hold zero. Symmetric ranges have their zero point in the middle of
 * the codes; their scale covers both ends (GPTQ's `sym`), so that the lowest code is all but unused.
 */
export function groupRange(low: number, high: number, bits: number, symmetric: boolean): GroupRange {
  const most = 2 ** bits - 1;
  let bottom = Math.min(low, 0);
  let top = Math.max(high, 0);
  if (symmetric) {
    top = Math.max(top, -bottom);
    bottom = -top;
  }
  if (bottom === 0 && top === 0) return { scale: 1, zero: symmetric ? 2 ** (bits - 1) : 0 };
  const scale = heldByHalf((top - bottom) / most);
  const zero = symmetric ? 2 ** (bits - 1) : Math.min(most, Math.max(0, Math.round(-bottom / scale)));
  return { scale, zero };
}

/** Scales that would vanish or overflow in f16 take its smallest or largest value. */
function heldByHalf(scale: number): number {
  return Math.min(65_504, Math.max(2 ** -24, roundToHalf(scale)));
}

export function codeOf(value: number, { scale, zero }: GroupRange, most: number): number {
  return Math.min(most, Math.max(0, Math.round(value / scale) + zero));
}

/** Every value to its nearest code, ranges from each group's extremes; `shrink` narrows a group's range. */
export function roundToNearest(
  weight: Float32Array,
  shape: { readonly rows: number; readonly cols: number; readonly bits: number; readonly groupSize: number },
  symmetric: boolean,
  shrink?: Float32Array,
): IntegerGroups {
  const { rows, cols, bits, groupSize } = shape;
  const groups = cols / groupSize;
  const most = 2 ** bits - 1;
  const codes = new Uint8Array(rows * cols);
  const scales = new Float32Array(rows * groups);
  const zeros = new Uint8Array(rows * groups);
  for (let group = 0; group < rows * groups; group++) {
    const start = group * groupSize;
    const end = start + groupSize;
    let low = 0;
    let high = 0;
    for (let at = start; at < end; at++) {
      const value = weight[at]!;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const share = shrink?.[group] ?? 1;
    const range = groupRange(low * share, high * share, bits, symmetric);
    scales[group] = range.scale;
    zeros[group] = range.zero;
    for (let at = start; at < end; at++) codes[at] = codeOf(weight[at]!, range, most);
  }
  return { ...shape, codes, scales, zeros };
}

export function groupValues(matrix: IntegerGroups): Float32Array {
  const { rows, cols, groupSize, groupOf, codes, scales, zeros } = matrix;
  const groups = cols / groupSize;
  const values = new Float32Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++) {
      const at = row * cols + col;
      const group = row * groups + (groupOf?.[col] ?? Math.floor(col / groupSize));
      values[at] = (codes[at]! - zeros[group]!) * scales[group]!;
    }
  }
  return values;
}
