/**
 * How ggml finds the scale of a group of weights: rounds at several scales around the obvious one, solves for the best scale (and
 * offset) of each rounding by least squares, and keeps the best. Own statement of the methods in ggml-quants.c
 * (make_qkx2_quants, make_qx_quants, make_q3_quants).
 */

export interface AffineSearch {
  /** Highest code; the lowest is 0. */
  readonly most: number;
  /** The tried scales stretch the range to `most + first + step * i` codes. */
  readonly first: number;
  readonly steps: number;
  /** Compare roundings by weighted absolute instead of squared errors. */
  readonly absolute: boolean;
}

interface AffineFit {
  scale: number;
  /** w = scale * code - minimum, never negative. */
  minimum: number;
}

const step = 0.1;
/** Buffers for the current group: codes, distances from the lowest value, weights times values, weights by value. */
const codes = new Float64Array(32);
const distances = new Float64Array(32);
const products = new Float64Array(32);
const counted = new Float64Array(32);

/** The best `scale` and `minimum` for values under weights; both 0 for values that are all 0. */
export function fitAffine(
  values: Float32Array,
  weights: Float64Array,
  search: AffineSearch,
  fit: AffineFit,
): void {
  const n = values.length;
  const { most, first, steps, absolute } = search;
  let low = 0;
  let high = -Infinity;
  let sumW = 0;
  let sumX = 0;
  for (let i = 0; i < n; i++) {
    const x = values[i]!;
    const w = weights[i]!;
    if (x < low) low = x;
    if (x > high) high = x;
    products[i] = w * x;
    sumW += w;
    sumX += w * x;
  }
  fit.scale = 0;
  fit.minimum = -low;
  if (!(high > low)) return;
  const range = high - low;
  for (let i = 0; i < n; i++) {
    distances[i] = values[i]! - low;
    codes[i] = codeAt(distances[i]!, most / range, most);
  }
  fit.scale = range / most;
  let best = errorOf(values, weights, absolute, fit.scale, low);
  for (let i = 0; i <= steps; i++) {
    const inverse = (first + step * i + most) / range;
    let sumL = 0;
    let sumL2 = 0;
    let sumXL = 0;
    for (let j = 0; j < n; j++) {
      const code = codeAt(distances[j]!, inverse, most);
      const weighted = weights[j]! * code;
      codes[j] = code;
      sumL += weighted;
      sumL2 += weighted * code;
      sumXL += products[j]! * code;
    }
    const determinant = sumW * sumL2 - sumL * sumL;
    if (determinant <= 0) continue;
    let scale = (sumW * sumXL - sumX * sumL) / determinant;
    let offset = (sumL2 * sumX - sumL * sumXL) / determinant;
    if (offset > 0) {
      offset = 0;
      scale = sumXL / sumL2;
    }
    const error = errorOf(values, weights, absolute, scale, offset);
    if (error < best) {
      best = error;
      fit.scale = scale;
      fit.minimum = -offset;
    }
  }
}

/** The nearest code of a distance that is not negative; truncating is several times as fast as `Math.round`. */
function codeAt(distance: number, inverse: number, most: number): number {
  const code = (inverse * distance + 0.5) | 0;
  return code > most ? most : code;
}

/** Error of reading `codes` back. */
function errorOf(
  values: Float32Array,
  weights: Float64Array,
  absolute: boolean,
  scale: number,
  offset: number,
): number {
  const n = values.length;
  let error = 0;
  if (absolute) {
    for (let i = 0; i < n; i++) error += weights[i]! * Math.abs(scale * codes[i]! + offset - values[i]!);
    return error;
  }
  for (let i = 0; i < n; i++) {
    const gap = scale * codes[i]! + offset - values[i]!;
    error += weights[i]! * gap * gap;
  }
  return error;
}

/** The value of largest magnitude, its sign kept. */
export function extremeOf(values: ArrayLike<number>): number {
  let extreme = 0;
  for (let i = 0; i < values.length; i++) if (Math.abs(values[i]!) > Math.abs(extreme)) extreme = values[i]!;
  return extreme;
}

/** Magnitudes below which a group counts as zero. */
const vanishing = 1e-15;

/** The nearest code from -half to half - 1 of a value that is at most one beyond them; truncated, as above, from where it is positive. */
function signedCodeAt(value: number, half: number): number {
  const code = ((value + half + 2.5) | 0) - half - 2;
  return code >= half ? half - 1 : code < -half ? -half : code;
}

/** The best scale for codes from -half to half - 1 under weights; without them, values count by their squares. */
export function fitSymmetric(values: Float32Array, half: number, weights?: Float64Array): number {
  const extreme = extremeOf(values);
  if (Math.abs(extreme) < vanishing) return 0;
  const n = values.length;
  for (let i = 0; i < n; i++) {
    const x = values[i]!;
    counted[i] = weights?.[i] ?? x * x;
    products[i] = counted[i]! * x;
  }
  let best = -Infinity;
  let bestScale = 0;
  for (let i = -9; i <= 9; i++) {
    const inverse = -(half + step * i) / extreme;
    let sumXL = 0;
    let sumL2 = 0;
    for (let j = 0; j < n; j++) {
      const code = signedCodeAt(inverse * values[j]!, half);
      sumXL += products[j]! * code;
      sumL2 += counted[j]! * code * code;
    }
    if (sumL2 > 0 && sumXL * sumXL > best * sumL2) {
      bestScale = sumXL / sumL2;
      best = bestScale * sumXL;
    }
  }
  return bestScale;
}

/** The same for few codes: one rounding, then single codes are moved for as long as that helps. */
export function descendSymmetric(values: Float32Array, half: number, weights?: Float64Array): number {
  const extreme = extremeOf(values);
  if (Math.abs(extreme) < vanishing) return 0;
  const n = values.length;
  const inverse = -half / extreme;
  let sumXL = 0;
  let sumL2 = 0;
  for (let i = 0; i < n; i++) {
    const x = values[i]!;
    const code = Math.min(half - 1, Math.max(-half, Math.round(inverse * x)));
    const w = weights?.[i] ?? x * x;
    codes[i] = code;
    counted[i] = w;
    sumXL += w * x * code;
    sumL2 += w * code * code;
  }
  for (let round = 0; round < 5; round++) {
    let moved = false;
    for (let i = 0; i < n; i++) {
      const x = values[i]!;
      const w = counted[i]!;
      const code = codes[i]!;
      let othersXL = sumXL - w * x * code;
      let othersL2 = sumL2 - w * code * code;
      if (othersXL <= 0) continue;
      const next = Math.min(half - 1, Math.max(-half, Math.round((x * othersL2) / othersXL)));
      if (next === code) continue;
      othersXL += w * x * next;
      othersL2 += w * next * next;
      if (othersL2 <= 0 || othersXL * othersXL * sumL2 <= sumXL * sumXL * othersL2) continue;
      codes[i] = next;
      sumXL = othersXL;
      sumL2 = othersL2;
      moved = true;
    }
    if (!moved) break;
  }
  return sumL2 > 0 ? sumXL / sumL2 : 0;
}

const blockWeights = new Float64Array(256);

/**
 * How much each value of a block counts under an importance matrix: its importance, more for values that are large in their block, as
 * llama.cpp weighs them. The result is overwritten by the next call.
 */
export function importanceWeights(values: Float32Array, importance: Float32Array): Float64Array {
  const n = values.length;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += values[i]! * values[i]!;
  const typical = (2 * sum) / n;
  for (let i = 0; i < n; i++) {
    blockWeights[i] = importance[i]! * Math.sqrt(typical + values[i]! * values[i]!);
  }
  return blockWeights.subarray(0, n);
}
