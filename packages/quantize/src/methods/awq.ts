import type { Backend } from "@octavo/kernels";
import type { InputStatistics } from "../calibration/input-statistics.js";
import { timesTransposed } from "../calibration/matrix-products.js";
import { codeOf, groupValues, rangeOf, roundToNearest } from "../formats/integer-groups.js";
import type { IntegerFormat } from "../formats/module-format.js";
import type { FoldableInput } from "./folding.js";

/** Exponents of the inputs' magnitudes that are tried, from 0 (no scaling) on. */
const exponents: readonly number[] = Array.from({ length: 20 }, (_, i) => i / 20);
const leastScale = 1e-4;
/** Shares of a group's range that are tried. */
const shrinks: readonly number[] = Array.from({ length: 9 }, (_, i) => 1 - i * 0.05);

/** A matrix with what is known of its input. */
export interface AwqMatrix {
  readonly weight: Float32Array;
  readonly rows: number;
  readonly cols: number;
}

/**
 * AWQ's search (Lin et al., arXiv 2306.00978): inputs of large magnitude get large weights, so that rounding hurts them less. Scales are
 * a power of the inputs' mean magnitudes; the exponent is the one whose rounded matrices give the output nearest to the original's on
 * the sample.
 * @returns scales by the producer's columns
 */
export async function searchScales(
  backend: Backend,
  input: FoldableInput,
  matrices: readonly AwqMatrix[],
  statistics: InputStatistics,
  format: IntegerFormat,
): Promise<Float32Array> {
  const magnitudes = producerMeans(input, statistics.means);
  const { sample } = statistics;
  let best = Infinity;
  let bestScales: Float32Array = new Float32Array(input.producerWidth).fill(1);
  for (const exponent of exponents) {
    const scales = scalesOf(magnitudes, exponent);
    let loss = 0;
    for (const { weight, rows, cols } of matrices) {
      const scaled = scaleColumns(weight, cols, (col) => scales[input.columnOf[col]!]!);
      const shape = { rows, cols, bits: format.bits, groupSize: format.groupSizeOf(cols) };
      const rounded = groupValues(roundToNearest(scaled, shape, format.symmetric));
      const gap = scaleColumns(rounded, cols, (col) => 1 / scales[input.columnOf[col]!]!);
      for (let i = 0; i < gap.length; i++) gap[i] = gap[i]! - weight[i]!;
      for (const value of await timesTransposed(backend, sample, gap, cols)) loss += value * value;
    }
    if (loss < best) {
      best = loss;
      bestScales = scales;
    }
  }
  return bestScales;
}

/** Columns that share a scale share the mean of their magnitudes. */
function producerMeans({ columnOf, producerWidth }: FoldableInput, means: Float64Array): Float64Array {
  const sums = new Float64Array(producerWidth);
  for (const [col, mean] of means.entries()) sums[columnOf[col]!] = sums[columnOf[col]!]! + mean;
  return sums.map((sum) => (sum * producerWidth) / columnOf.length);
}

/** Powers of the magnitudes, around 1. */
function scalesOf(magnitudes: Float64Array, exponent: number): Float32Array {
  const powers = magnitudes.map((magnitude) => Math.max(leastScale, magnitude ** exponent));
  let low = Infinity;
  let high = 0;
  for (const power of powers) {
    low = Math.min(low, power);
    high = Math.max(high, power);
  }
  const middle = Math.sqrt(low * high);
  return Float32Array.from(powers, (power) => power / middle);
}

function scaleColumns(matrix: Float32Array, cols: number, scaleOf: (col: number) => number): Float32Array {
  const scales = Float32Array.from({ length: cols }, (_, col) => scaleOf(col));
  const out = new Float32Array(matrix.length);
  for (let at = 0; at < matrix.length; at += cols) {
    for (let col = 0; col < cols; col++) out[at + col] = matrix[at + col]! * scales[col]!;
  }
  return out;
}

/**
 * How far to narrow each group's range: large weights may be cut off where that lets the others be told apart better. A group's error is
 * that of its part of the output over the sample, products of different inputs included.
 * @param sample `[n, cols]`, of the inputs as the matrix now takes them
 */
export function searchShrinks(
  { weight, rows, cols }: AwqMatrix,
  sample: Float32Array,
  { bits, symmetric, groupSizeOf }: Pick<IntegerFormat, "bits" | "symmetric" | "groupSizeOf">,
): Float32Array {
  const size = groupSizeOf(cols);
  const groups = cols / size;
  const chosen = new Float32Array(rows * groups).fill(1);
  for (let group = 0; group < groups; group++) {
    const moments = momentsOf(sample, cols, group * size, size);
    for (let row = 0; row < rows; row++) {
      const values = weight.subarray(row * cols + group * size, row * cols + (group + 1) * size);
      chosen[row * groups + group] = bestShrink(values, moments, bits, symmetric);
    }
  }
  return chosen;
}

function bestShrink(values: Float32Array, moments: Float32Array, bits: number, symmetric: boolean): number {
  const size = values.length;
  const most = 2 ** bits - 1;
  const gaps = new Float32Array(size);
  let low = 0;
  let high = 0;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  let best = Infinity;
  let chosen = 1;
  for (const shrink of shrinks) {
    const range = rangeOf(low * shrink, high * shrink, bits, symmetric);
    for (let i = 0; i < size; i++) {
      gaps[i] = values[i]! - (codeOf(values[i]!, range, most) - range.zero) * range.scale;
    }
    let error = 0;
    for (let i = 0; i < size; i++) {
      let product = 0;
      for (let j = 0; j < size; j++) product += moments[i * size + j]! * gaps[j]!;
      error += product * gaps[i]!;
    }
    if (error < best) {
      best = error;
      chosen = shrink;
    }
  }
  return chosen;
}

/** Sum of x xᵀ over the sample, for `size` columns from `first` on. */
function momentsOf(sample: Float32Array, cols: number, first: number, size: number): Float32Array {
  const out = new Float32Array(size * size);
  for (let at = first; at < sample.length; at += cols) {
    for (let i = 0; i < size; i++) {
      const x = sample[at + i]!;
      for (let j = 0; j < size; j++) out[i * size + j] = out[i * size + j]! + x * sample[at + j]!;
    }
  }
  return out;
}
