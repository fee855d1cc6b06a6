import assert from "node:assert/strict";
import type {
  Backend,
  KvCache,
  KvCacheSpec,
  Matrix,
  Op,
  OutputRow,
  ProgramSpec,
  StepPlan,
  TensorBytes,
  Vector,
} from "../backend.js";

/** Bytes of an f32 tensor in memory. */
export function floatBytes(values: ArrayLike<number>): TensorBytes {
  return { data: new Uint8Array(Float32Array.from(values).buffer) };
}

export function matrix(
  backend: Backend,
  rows: number,
  cols: number,
  values: ArrayLike<number>,
): Promise<Matrix> {
  return backend.createMatrix([{ type: "f32", rows, cols, bytes: floatBytes(values), name: "test.matrix" }]);
}

export function vector(backend: Backend, values: ArrayLike<number>): Vector {
  return backend.createVector([
    { type: "f32", length: values.length, bytes: floatBytes(values), name: "test.vector" },
  ]);
}

/** A cache for programs that do not attend. */
export const smallestCache: KvCacheSpec = {
  layers: [{ numKvHeads: 1, headDim: 8 }],
  numBlocks: 64,
  blockSize: 16,
  dtype: "f32",
};

/** A plan of one sequence from position 0 whose blocks are the cache's first ones. */
export function promptPlan(
  tokens: ArrayLike<number>,
  outputs: readonly OutputRow[],
  blockSize = 16,
): StepPlan {
  const numTokens = tokens.length;
  const numBlocks = Math.ceil(numTokens / blockSize);
  const count = (length: number): Int32Array => Int32Array.from({ length }, (_, i) => i);
  return {
    numTokens,
    numSequences: 1,
    tokenIds: Int32Array.from(tokens),
    positions: count(numTokens),
    slots: count(numTokens),
    queryStarts: Int32Array.of(0, numTokens),
    contextLengths: Int32Array.of(numTokens),
    blockTables: count(numBlocks),
    blockTableStarts: Int32Array.of(0, numBlocks),
    outputTokens: count(outputs.length),
    outputs,
  };
}

/**
 * Runs ops on given rows: an embedding whose table is the rows themselves fills buffer 0, the ops follow, and the rows of
 * buffer `result` come back. `buffers` are the widths of the buffers after 0.
 */
export async function runOps(
  backend: Backend,
  rows: readonly ArrayLike<number>[],
  test: {
    readonly buffers?: readonly number[];
    readonly ops: readonly Op[];
    readonly result: number;
    readonly cache?: KvCache;
    readonly plan?: (plan: StepPlan) => StepPlan;
  },
): Promise<Float32Array[]> {
  const width = rows[0]?.length ?? 0;
  const table = await matrix(
    backend,
    rows.length,
    width,
    rows.flatMap((row) => Array.from(row)),
  );
  const buffers = [width, ...(test.buffers ?? [])];
  const resultWidth = buffers[test.result] ?? 0;
  const head = await matrix(backend, 1, resultWidth, new Float32Array(resultWidth));
  const spec: ProgramSpec = {
    buffers: [...buffers, resultWidth],
    ops: [
      { op: "embedding", weight: table, out: { buffer: 0 } },
      ...test.ops,
      { op: "gather", in: { buffer: test.result }, out: { buffer: buffers.length } },
    ],
    hidden: { buffer: buffers.length },
    head: { weight: head },
    maxTokens: rows.length,
  };
  using program = backend.compile(spec);
  const cache = test.cache ?? backend.createKvCache(smallestCache);
  const plan = promptPlan(
    rows.map((_, row) => row),
    rows.map(() => ({ kind: "hidden" })),
  );
  const result = await backend.execute(program, cache, test.plan?.(plan) ?? plan);
  return result.rows.map((row) => {
    assert.ok(row.hidden, "a hidden row without its state");
    return row.hidden;
  });
}

/** Each value within `tolerance` of the row's largest magnitude. */
export function assertClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  assert.equal(actual.length, expected.length);
  const scale = Math.max(1e-30, ...Array.from(expected, Math.abs));
  for (let i = 0; i < expected.length; i++) {
    const gap = Math.abs((actual[i] ?? Number.NaN) - (expected[i] ?? Number.NaN)) / scale;
    assert.ok(
      gap <= tolerance,
      `value ${i} is ${actual[i]}, expected ${expected[i]} (${gap} of the largest)`,
    );
  }
}

/** The same bits, NaN included. */
export function assertSameBits(
  actual: Float32Array | undefined,
  expected: Float32Array | undefined,
  what: string,
): void {
  assert.ok(actual && expected, `${what}: missing`);
  const patterns = (values: Float32Array): Uint32Array => new Uint32Array(values.slice().buffer);
  assert.deepEqual(patterns(actual), patterns(expected), what);
}
