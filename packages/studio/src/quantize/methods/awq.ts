import type { Backend } from "@octavo/kernels";
import type { InputStatistics } from "../calibration/input-statistics.js";
import { timesTransposed } from "../calibration/matrix-products.js";
import { codeOf, groupRange } from "../formats/integer-groups.js";
import type { IntegerFormat } from "../formats/module-format.js";
import { copyBlock } from "./cholesky.js";
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
  const largest = matrices.reduce((most, { weight }) => Math.max(most, weight.length), 0);
  const scratch = new Float32Array(largest);
  for (const exponent of exponents) {
    const scales = scalesOf(magnitudes, exponent);
    const ofColumns = Float32Array.from(input.columnOf, (column) => scales[column]!);
    let loss = 0;
    for (const matrix of matrices) {
      const gaps = scratch.subarray(0, matrix.weight.length);
      writeRoundingGaps(gaps, matrix, ofColumns, format);
      for (const value of await timesTransposed(backend, sample, gaps, matrix.cols)) loss += value * value;
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

/** Rounding error of the matrix with its columns scaled before rounding and scaled back after. */
function writeRoundingGaps(
  gaps: Float32Array,
  { weight, cols }: AwqMatrix,
  scales: Float32Array,
  { bits, symmetric, groupSizeOf }: Pick<IntegerFormat, "bits" | "symmetric" | "groupSizeOf">,
): void {
  const size = groupSizeOf(cols);
  const most = 2 ** bits - 1;
  const scaled = new Float32Array(size);
  const back = scales.map((scale) => 1 / scale);
  for (let start = 0; start < weight.length; start += size) {
    const column = start % cols;
    let low = 0;
    let high = 0;
    for (let i = 0; i < size; i++) {
      const value = Math.fround(weight[start + i]! * scales[column + i]!);
      scaled[i] = value;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const { scale, zero } = groupRange(low, high, bits, symmetric);
    const inverse = 1 / scale;
    for (let i = 0; i < size; i++) {
      // Nothing lies more than a code below the range, and what lies above it takes the highest code.
      const code = Math.min(most + 1, (scaled[i]! * inverse + zero + 1.5) | 0) - 1;
      const rounded = (code < 0 ? 0 : code) - zero;
      gaps[start + i] = rounded * scale * back[column + i]! - weight[start + i]!;
    }
  }
}

/**
 * How far to narrow each group's range: large weights may be clipped where that gives the others finer steps. A group's error is
 * that of its part of the output over the sample, products of different inputs included.
 * @param sample `[n, cols]`, of the inputs as the matrix now takes them
 * @returns by row and group
 */
export async function searchShrinks(
  backend: Backend,
  { weight, rows, cols }: AwqMatrix,
  sample: Float32Array,
  format: Pick<IntegerFormat, "bits" | "symmetric" | "groupSizeOf">,
): Promise<Float32Array> {
  const size = format.groupSizeOf(cols);
  const groups = cols / size;
  const chosen = new Float32Array(rows * groups).fill(1);
  for (let group = 0; group < groups; group++) {
    const ofGroup = { left: group * size, cols: size };
    const inputs = copyBlock(sample, cols, { top: 0, rows: sample.length / cols, ...ofGroup });
    const values = copyBlock(weight, cols, { top: 0, rows, ...ofGroup });
    const best = new Float64Array(rows).fill(Infinity);
    for (const shrink of shrinks) {
      const outputs = await timesTransposed(backend, inputs, shrunkGaps(values, size, shrink, format), size);
      const errors = sumOfSquares(outputs, rows);
      for (let row = 0; row < rows; row++) {
        if (errors[row]! >= best[row]!) continue;
        best[row] = errors[row]!;
        chosen[row * groups + group] = shrink;
      }
    }
  }
  return chosen;
}

/** Rounding error of each of several consecutive groups under a narrowed range. */
function shrunkGaps(
  values: Float32Array,
  size: number,
  shrink: number,
  { bits, symmetric }: Pick<IntegerFormat, "bits" | "symmetric">,
): Float32Array {
  const most = 2 ** bits - 1;
  const gaps = new Float32Array(values.length);
  for (let start = 0; start < values.length; start += size) {
    let low = 0;
    let high = 0;
    for (let at = start; at < start + size; at++) {
      const value = values[at]!;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const range = groupRange(low * shrink, high * shrink, bits, symmetric);
    for (let at = start; at < start + size; at++) {
      gaps[at] = (codeOf(values[at]!, range, most) - range.zero) * range.scale - values[at]!;
    }
  }
  return gaps;
}

/** Sums over each column of `[n, width]`. */
function sumOfSquares(matrix: Float32Array, width: number): Float64Array {
  const sums = new Float64Array(width);
  for (let start = 0; start < matrix.length; start += width) {
    for (let i = 0; i < width; i++) {
      const value = matrix[start + i]!;
      sums[i] = sums[i]! + value * value;
    }
  }
  return sums;
}
