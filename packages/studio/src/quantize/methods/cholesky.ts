import type { Backend } from "@octavo/kernels";
import { timesTransposed } from "../calibration/matrix-products.js";

const block = 128;
/** Rows of the trailing matrix that are updated at a time, which bounds the memory of the update. */
const updateRows = 1024;

/**
 * The upper factor U of a positive definite matrix's inverse, H⁻¹ = Uᵀ U. With the rows and columns of H turned around, H = L Lᵀ gives
 * U as L⁻¹ turned around again, so one factorisation and one triangular inverse are enough.
 * @param hessian `[n, n]`, overwritten
 * @returns the transpose of U, `[n, n]` lower triangular; undefined when the matrix is not positive definite
 */
export async function inverseFactor(
  backend: Backend,
  hessian: Float32Array,
  n: number,
): Promise<Float32Array | undefined> {
  hessian.reverse();
  if (!(await factorise(backend, hessian, n))) return undefined;
  const inverse = await invertLower(backend, hessian, n);
  // Turned around, the transpose of the inverse is the transpose of U.
  inverse.reverse();
  return inverse;
}

/** L over the lower triangle, right-looking by blocks: what remains after a block is updated by one product. */
async function factorise(backend: Backend, a: Float32Array, n: number): Promise<boolean> {
  for (let first = 0; first < n; first += block) {
    const end = Math.min(first + block, n);
    for (let i = first; i < n; i++) {
      for (let j = first; j < Math.min(i + 1, end); j++) {
        let sum = a[i * n + j]!;
        for (let k = first; k < j; k++) sum -= a[i * n + k]! * a[j * n + k]!;
        if (i !== j) a[i * n + j] = sum / a[j * n + j]!;
        else if (sum > 0) a[i * n + i] = Math.sqrt(sum);
        else return false;
      }
    }
    const width = end - first;
    const panel = copyBlock(a, n, { top: end, rows: n - end, left: first, cols: width });
    for (let top = 0; top < n - end; top += updateRows) {
      const rows = Math.min(updateRows, n - end - top);
      const reach = top + rows;
      const left = panel.subarray(top * width, reach * width);
      const product = await timesTransposed(backend, left, panel.subarray(0, reach * width), width);
      for (let i = 0; i < rows; i++) {
        const at = (end + top + i) * n + end;
        for (let j = 0; j <= top + i; j++) a[at + j] = a[at + j]! - product[i * reach + j]!;
      }
    }
  }
  return true;
}

/** The transpose of L⁻¹, `[n, n]` upper triangular; L is the lower triangle of `l`. */
async function invertLower(backend: Backend, l: Float32Array, n: number): Promise<Float32Array> {
  const transposed = new Float32Array(n * n);
  for (let first = 0; first < n; first += block) {
    const end = Math.min(first + block, n);
    const width = end - first;
    const corner = invertBlock(l, n, first, end);
    for (let i = 0; i < width; i++) {
      for (let j = 0; j <= i; j++) transposed[(first + j) * n + first + i] = corner[i * width + j]!;
    }
    if (first === 0) continue;
    // X[rows, :first] = -corner L[rows, :first] X[:first, :first]
    const left = copyBlock(l, n, { top: first, rows: width, left: 0, cols: first });
    const known = copyBlock(transposed, n, { top: 0, rows: first, left: 0, cols: first });
    const product = await timesTransposed(backend, known, left, first);
    const below = await timesTransposed(backend, product, corner, width);
    for (let j = 0; j < first; j++) {
      for (let i = 0; i < width; i++) transposed[j * n + first + i] = -below[j * width + i]!;
    }
  }
  return transposed;
}

function invertBlock(l: Float32Array, n: number, first: number, end: number): Float32Array {
  const width = end - first;
  const out = new Float32Array(width * width);
  for (let col = 0; col < width; col++) {
    for (let row = col; row < width; row++) {
      let sum = row === col ? 1 : 0;
      for (let k = col; k < row; k++) sum -= l[(first + row) * n + first + k]! * out[k * width + col]!;
      out[row * width + col] = sum / l[(first + row) * n + first + row]!;
    }
  }
  return out;
}

export interface Block {
  readonly top: number;
  readonly rows: number;
  readonly left: number;
  readonly cols: number;
}

/** A part of a row-major matrix of `stride` columns, contiguous. */
export function copyBlock(
  matrix: Float32Array,
  stride: number,
  { top, rows, left, cols }: Block,
): Float32Array {
  const out = new Float32Array(rows * cols);
  for (let i = 0; i < rows; i++) {
    const at = (top + i) * stride + left;
    out.set(matrix.subarray(at, at + cols), i * cols);
  }
  return out;
}
