import type { Backend, MatrixSource } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";

/** The values of a matrix as a backend's embedding gives them, row after row. */
export async function readRows(backend: Backend, source: MatrixSource): Promise<Float32Array> {
  const { rows, cols } = source;
  const count = (length: number): Int32Array => Int32Array.from({ length }, (_, i) => i);
  const blockSize = 16;
  const numBlocks = Math.ceil(rows / blockSize);
  using weight = await backend.createMatrix([source]);
  const head = { data: new Uint8Array(4 * cols) };
  using headWeight = await backend.createMatrix([{ type: "f32", rows: 1, cols, bytes: head, name: "head" }]);
  using program = backend.compile({
    buffers: [cols, cols],
    ops: [
      { op: "embedding", weight, out: { buffer: 0 } },
      { op: "gather", in: { buffer: 0 }, out: { buffer: 1 } },
    ],
    hidden: { buffer: 1 },
    head: { weight: headWeight },
    maxTokens: rows,
  });
  using cache = backend.createKvCache({
    layers: [{ numKvHeads: 1, headDim: 8 }],
    numBlocks,
    blockSize,
    dtype: "f32",
  });
  const result = await backend.execute(program, cache, {
    numTokens: rows,
    numSequences: 1,
    tokenIds: count(rows),
    positions: count(rows),
    slots: count(rows),
    queryStarts: Int32Array.of(0, rows),
    contextLengths: Int32Array.of(rows),
    blockTables: count(numBlocks),
    blockTableStarts: Int32Array.of(0, numBlocks),
    outputTokens: count(rows),
    outputs: Array.from({ length: rows }, () => ({ kind: "hidden" as const })),
  });
  const values = new Float32Array(rows * cols);
  for (const [row, { hidden }] of result.rows.entries()) {
    if (hidden === undefined) throw new OctavoError("internal_error", `Row ${row} came without its values.`);
    values.set(hidden, row * cols);
  }
  return values;
}
