import type { Backend } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import { timesTransposed } from "../calibration/matrix-products.js";
import { codeOf, type IntegerGroups, groupRange } from "../formats/integer-groups.js";
import { copyBlock, inverseFactor } from "./cholesky.js";

interface GptqSettings {
  readonly bits: number;
  readonly groupSize: number;
  readonly symmetric: boolean;
  /** Columns in the order of their weight in the output, largest first. */
  readonly actOrder: boolean;
}

/** Share of the mean diagonal that is added to the diagonal; ten times as much each time the matrix is still not definite. */
const dampings = [0.01, 0.1, 1, 10];

/**
 * GPTQ (Frantar et al., arXiv 2210.17323): columns are rounded one after another, and the error that rounding one
 * makes in the output is compensated by the columns that follow, by the inverse of the inputs' second moments.
 * @param weight `[rows, cols]`, overwritten
 * @param moments `[cols, cols]`, mean of x xᵀ, overwritten
 */
export async function solveGptq(
  backend: Backend,
  weight: Float32Array,
  moments: Float32Array,
  settings: GptqSettings,
): Promise<IntegerGroups> {
  const cols = Math.sqrt(moments.length);
  const rows = weight.length / cols;
  const { bits, groupSize, symmetric } = settings;
  for (let col = 0; col < cols; col++) {
    // An input that is always zero does not affect the output.
    if (moments[col * cols + col] !== 0) continue;
    moments[col * cols + col] = 1;
    for (let row = 0; row < rows; row++) weight[row * cols + col] = 0;
  }
  const order = settings.actOrder ? byDiagonal(moments, cols) : undefined;
  const w = order === undefined ? weight : permuteColumns(weight, rows, order);
  const factor = await dampedFactor(
    backend,
    order === undefined ? moments : permuteBoth(moments, order),
    cols,
  );
  const groups = cols / groupSize;
  const codes = new Uint8Array(rows * cols);
  const scales = new Float32Array(rows * groups);
  const zeros = new Uint8Array(rows * groups);
  const block = Math.min(128, groupSize);
  const most = 2 ** bits - 1;
  for (let first = 0; first < cols; first += block) {
    const width = Math.min(block, cols - first);
    const errors = new Float32Array(rows * width);
    const corner = copyBlock(factor, cols, { top: first, rows: width, left: first, cols: width });
    const group = Math.floor(first / groupSize);
    for (let row = 0; row < rows; row++) {
      const at = row * cols + first;
      const place = row * groups + group;
      if (first % groupSize === 0) {
        const range = rangeOfGroup(w.subarray(at, at + groupSize), bits, symmetric);
        scales[place] = range.scale;
        zeros[place] = range.zero;
      }
      const range = { scale: scales[place]!, zero: zeros[place]! };
      for (let i = 0; i < width; i++) {
        const value = w[at + i]!;
        const code = codeOf(value, range, most);
        codes[at + i] = code;
        const error = (value - (code - range.zero) * range.scale) / corner[i * width + i]!;
        errors[row * width + i] = error;
        // Column i of the factor's transpose, below its diagonal.
        for (let j = i + 1; j < width; j++) w[at + j] = w[at + j]! - error * corner[j * width + i]!;
      }
    }
    const end = first + width;
    if (end === cols) break;
    const below = copyBlock(factor, cols, { top: end, rows: cols - end, left: first, cols: width });
    const update = await timesTransposed(backend, errors, below, width);
    for (let row = 0; row < rows; row++) {
      for (let col = end; col < cols; col++) {
        w[row * cols + col] = w[row * cols + col]! - update[row * (cols - end) + col - end]!;
      }
    }
  }
  if (order === undefined) return { rows, cols, bits, groupSize, codes, scales, zeros };
  const groupOf = new Int32Array(cols);
  const inPlace = new Uint8Array(codes.length);
  for (const [position, col] of order.entries()) {
    groupOf[col] = Math.floor(position / groupSize);
    for (let row = 0; row < rows; row++) inPlace[row * cols + col] = codes[row * cols + position]!;
  }
  return { rows, cols, bits, groupSize, groupOf, codes: inPlace, scales, zeros };
}

function rangeOfGroup(
  values: Float32Array,
  bits: number,
  symmetric: boolean,
): { scale: number; zero: number } {
  let low = 0;
  let high = 0;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return groupRange(low, high, bits, symmetric);
}

async function dampedFactor(backend: Backend, moments: Float32Array, n: number): Promise<Float32Array> {
  let mean = 0;
  for (let i = 0; i < n; i++) mean += moments[i * n + i]! / n;
  for (const damping of dampings) {
    const damped = moments.slice();
    for (let i = 0; i < n; i++) damped[i * n + i] = damped[i * n + i]! + damping * mean;
    const factor = await inverseFactor(backend, damped, n);
    if (factor !== undefined) return factor;
  }
  throw new OctavoError(
    "invalid_option",
    "The calibration texts say too little: the inputs' second moments cannot be inverted. Use more and more varied texts.",
    { param: "calibration" },
  );
}

/** Columns by their diagonal entry, largest first; equal ones in order. */
function byDiagonal(moments: Float32Array, n: number): Int32Array {
  const diagonal = Float32Array.from({ length: n }, (_, i) => moments[i * n + i]!);
  return Int32Array.from({ length: n }, (_, i) => i).toSorted((a, b) => diagonal[b]! - diagonal[a]! || a - b);
}

function permuteColumns(matrix: Float32Array, rows: number, order: Int32Array): Float32Array {
  const cols = order.length;
  const out = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++) out[row * cols + col] = matrix[row * cols + order[col]!]!;
  }
  return out;
}

function permuteBoth(matrix: Float32Array, order: Int32Array): Float32Array {
  const n = order.length;
  const out = new Float32Array(matrix.length);
  for (let row = 0; row < n; row++) {
    for (let col = 0; col < n; col++) out[row * n + col] = matrix[order[row]! * n + order[col]!]!;
  }
  return out;
}
