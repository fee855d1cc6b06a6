import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type AttentionCase, compareAttention } from "@octavo/kernels/testing/conformance/attention";
import { matrixAttentionOf } from "./wgsl/matrix-attention.js";
import { emulatedUnit } from "./wgsl/matrix-unit.js";
import { openMatrixGpu, openTestGpu } from "./testing/software-gpu.js";
import { createWebGpuBackend } from "./webgpu-backend.js";

const gpu = await openMatrixGpu();
/** Tiles and subgroups as NVIDIA's. */
const wideGpu = await openTestGpu({ matrixUnits: emulatedUnit(16, 32) });
const heads = { numHeads: 4, numKvHeads: 2, scale: 0.2, blockSize: 16 } as const;

const cases: readonly (readonly [string, AttentionCase])[] = [
  ["heads of 8", { ...heads, headDim: 8, dtype: "f32", lengths: [40, 5] }],
  ["heads of 20, which tiles do not divide", { ...heads, headDim: 20, dtype: "f16", lengths: [70, 33] }],
  [
    "more heads than tiles have rows",
    { ...heads, numHeads: 40, numKvHeads: 1, headDim: 16, dtype: "f16", lengths: [35] },
  ],
  ["heads of 64, a window", { ...heads, headDim: 64, dtype: "bf16", lengths: [90], slidingWindow: 33 }],
  ["chunks and bytes", { ...heads, headDim: 32, dtype: "int8", lengths: [70, 10], chunk: 17 }],
  [
    "a soft cap and sinks",
    { ...heads, headDim: 16, dtype: "f32", lengths: [60], softCap: 5, sinks: [-40, 0.5, 8, 1] },
  ],
  ["two segments", { ...heads, numHeads: 2, numKvHeads: 1, headDim: 8, dtype: "f16", lengths: [290] }],
];

/** Queries, keys, values and weights of positions are rounded to f16, 2^-11 of each; what bf16 and bytes lose comes before that. */
describe(
  "attention on matrix units, against plain double sums",
  { skip: typeof gpu === "string" && gpu },
  () => {
    for (const [index, [name, shape]] of cases.entries())
      for (const [tiles, on] of [
        ["own", gpu],
        ["16 x 16 x 16", wideGpu],
      ] as const) {
        if (on === wideGpu && index % 3 !== 0) continue;
        test(`${name}, ${tiles} tiles`, async () => {
          if (typeof on === "string") return;
          await compareAttention(() => createWebGpuBackend(on), { ...shape, tolerance: 4e-3 }, index);
        });
      }
  },
);

test("heads that a workgroup has no memory for, and latents, stay on lanes", () => {
  const queries = (headDim: number, bytes: number, hasValues = true): number | undefined =>
    matrixAttentionOf(emulatedUnit(8, 32), { headDim, hasValues }, bytes)?.queries;
  assert.equal(queries(64, 48 << 10), 32);
  assert.equal(queries(64, 32 << 10), 16);
  assert.equal(queries(256, 32 << 10), undefined);
  assert.equal(queries(64, 48 << 10, false), undefined);
  assert.equal(matrixAttentionOf(undefined, { headDim: 64, hasValues: true }, 1 << 20), undefined);
  const wide = { shape: { m: 16, n: 64, k: 16 }, subgroupSize: 32 };
  assert.equal(matrixAttentionOf(wide, { headDim: 64, hasValues: true }, 1 << 20), undefined);
});
