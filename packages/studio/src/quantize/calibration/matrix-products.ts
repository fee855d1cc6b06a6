import type { Backend, Matrix, StepPlan } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import { viewBytes } from "../output/output-tensor.js";

/** Rows of a product computed in one step. */
const rowsPerStep = 512;
const noCache = {
  layers: [{ numKvHeads: 1, headDim: 8 }],
  numBlocks: rowsPerStep / 16,
  blockSize: 16,
  dtype: "f32",
} as const;

/** `[rows, cols]` values as a matrix of the backend. */
export function floatMatrix(
  backend: Backend,
  values: Float32Array,
  rows: number,
  cols: number,
  name: string,
): Promise<Matrix> {
  return backend.createMatrix([{ type: "f32", rows, cols, bytes: { data: viewBytes(values) }, name }]);
}

/**
 * `a` times the transpose of `b`, in single precision, by the kernels that models run on: the rows of `a` are an embedding's, `b` is
 * a linear layer's weight.
 * @param a `[m, k]`
 * @param b `[n, k]`
 * @returns `[m, n]`
 */
export async function timesTransposed(
  backend: Backend,
  a: Float32Array,
  b: Float32Array,
  k: number,
): Promise<Float32Array> {
  using weight = await floatMatrix(backend, b, b.length / k, k, "b");
  return await timesMatrix(backend, a, weight);
}

/** The same with a matrix that the backend holds already. */
export async function timesMatrix(backend: Backend, a: Float32Array, weight: Matrix): Promise<Float32Array> {
  const { rows: n, cols: k } = weight;
  const m = a.length / k;
  using head = await floatMatrix(backend, new Float32Array(n), 1, n, "head");
  using cache = backend.createKvCache(noCache);
  const out = new Float32Array(m * n);
  for (let first = 0; first < m; first += rowsPerStep) {
    const numRows = Math.min(rowsPerStep, m - first);
    using table = await floatMatrix(backend, a.subarray(first * k, (first + numRows) * k), numRows, k, "a");
    using program = backend.compile({
      buffers: [k, n, n],
      ops: [
        { op: "embedding", weight: table, out: { buffer: 0 } },
        { op: "linear", in: { buffer: 0 }, weight, out: { buffer: 1 } },
        { op: "gather", in: { buffer: 1 }, out: { buffer: 2 } },
      ],
      hidden: { buffer: 2 },
      head: { weight: head },
      maxTokens: numRows,
    });
    const { rows } = await backend.execute(program, cache, rowPlan(numRows, 16));
    for (const [row, { hidden }] of rows.entries()) out.set(hiddenOf(hidden), (first + row) * n);
  }
  return out;
}

/** One sequence of tokens 0, 1, 2, ..., every row of which comes back. */
export function rowPlan(numTokens: number, blockSize: number): StepPlan {
  const count = Int32Array.from({ length: numTokens }, (_, i) => i);
  const numBlocks = Math.ceil(numTokens / blockSize);
  return {
    numTokens,
    numSequences: 1,
    tokenIds: count,
    positions: count,
    slots: count,
    queryStarts: Int32Array.of(0, numTokens),
    contextLengths: Int32Array.of(numTokens),
    blockTables: Int32Array.from({ length: numBlocks }, (_, i) => i),
    blockTableStarts: Int32Array.of(0, numBlocks),
    outputTokens: count,
    outputs: Array.from({ length: numTokens }, () => ({ kind: "hidden" as const })),
  };
}

export function hiddenOf(hidden: Float32Array | undefined): Float32Array {
  if (hidden === undefined) throw new OctavoError("internal_error", "The backend returned no hidden state.");
  for (let i = 0; i < hidden.length; i++) {
    if (Number.isFinite(hidden[i])) continue;
    throw new OctavoError(
      "artifact_invalid",
      "The model's activations on the calibration texts are not finite; its weights are damaged or need another dtype.",
    );
  }
  return hidden;
}
