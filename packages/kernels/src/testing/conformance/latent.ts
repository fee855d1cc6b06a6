import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, KvDtype, Op } from "../../backend.js";
import { assertClose, assertSameBits, matrix, runOps } from "../op-harness.js";
import { SeededRandom } from "../seeded-random.js";
import { compareAttention } from "./attention.js";

/** Latent attention and the products by head around it. */
export function latentConformance(open: (numThreads: number) => Backend, hasFewSteps = false): void {
  describe("latent attention", () => {
    const dtypes: readonly KvDtype[] = ["f32", "f16", "bf16", "int8"];
    const shapes = [
      { headDim: 576, valueDim: 512, blockSize: 16, numHeads: 2, lengths: [67, 3] },
      { headDim: 96, valueDim: 80, blockSize: 32, numHeads: 18, lengths: [40, 9] },
      { headDim: 36, valueDim: 20, blockSize: 16, numHeads: 5, lengths: [130, 21] },
      { headDim: 40, valueDim: 32, blockSize: 5, numHeads: 2, lengths: [81, 20] },
    ];
    for (const [index, shape] of shapes.entries())
      for (const [at, dtype] of dtypes.entries()) {
        if (hasFewSteps && at !== index) continue;
        test(`keys of ${shape.headDim}, values of ${shape.valueDim}, blocks of ${shape.blockSize} in ${dtype}`, () =>
          compareAttention(
            () => open(2),
            { ...shape, numKvHeads: 1, scale: 1 / Math.sqrt(shape.headDim), dtype },
            index,
          ));
      }
  });

  describe("head_linear", () => {
    const [numHeads, rows, cols, passed] = [5, 24, 40, 6];
    const random = new SeededRandom(3);
    const weights = Array.from({ length: numHeads }, () => random.floats(rows * cols));
    const inputs = Array.from({ length: 9 }, () => random.floats(numHeads * (cols + passed)));
    const opOf = async (backend: Backend): Promise<Op> => ({
      op: "head_linear",
      in: { buffer: 0 },
      weights: await Promise.all(weights.map((values) => matrix(backend, rows, cols, values))),
      passed,
      out: { buffer: 1 },
    });
    const buffers = [numHeads * (rows + passed)];

    test("multiplies each head with its matrix, behind what is passed on", async () => {
      using backend = open(2);
      const out = await runOps(backend, inputs, { buffers, ops: [await opOf(backend)], result: 1 });
      for (const [row, input] of inputs.entries()) {
        const expected = weights.flatMap((weight, head) => {
          const own = input.subarray(head * (cols + passed), (head + 1) * (cols + passed));
          const products = Array.from({ length: rows }, (_, r) =>
            own.subarray(0, cols).reduce((sum, x, c) => sum + x * (weight[r * cols + c] ?? 0), 0),
          );
          return [...own.subarray(cols), ...products];
        });
        assertClose(out[row] ?? [], expected, 1e-5);
      }
    });

    test("gives a row the same bits alone, and on any number of threads", async () => {
      using backend = open(3);
      const all = await runOps(backend, inputs, { buffers, ops: [await opOf(backend)], result: 1 });
      using other = open(1);
      const op = await opOf(other);
      for (const [row, input] of inputs.entries()) {
        const [alone] = await runOps(other, [input], { buffers, ops: [op], result: 1 });
        assertSameBits(all[row], alone, `row ${row}`);
      }
    });

    test("refuses widths that do not fit", async () => {
      using backend = open(1);
      const op = await opOf(backend);
      await assert.rejects(
        runOps(backend, inputs, { buffers: [7], ops: [op], result: 1 }),
        /the width of out is 7/,
      );
    });
  });

  test("values of their own, and values without a size, are refused", async () => {
    using backend = open(1);
    const shape = { layer: 0, numHeads: 1, numKvHeads: 1, headDim: 8, scale: 1 } as const;
    const attention = {
      op: "attention",
      q: { buffer: 0 },
      k: { buffer: 0 },
      out: { buffer: 1 },
      ...shape,
    } as const;
    const run = (op: Op): Promise<unknown> =>
      runOps(backend, [new Float32Array(8)], { buffers: [8], ops: [op], result: 1 });
    await assert.rejects(run({ ...attention, v: { buffer: 0 }, valueDim: 8 }), /as wide as keys/);
    await assert.rejects(run(attention), /takes undefined of 8 columns/);
    await assert.rejects(run({ ...attention, valueDim: 9 }), /takes 9 of 8 columns/);
    await assert.rejects(run({ ...attention, valueDim: 8 }), /needs 1 latent kv heads of 8/);
  });
}
