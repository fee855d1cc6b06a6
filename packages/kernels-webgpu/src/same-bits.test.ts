import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { MatrixSource, Op, Vector } from "@octavo/kernels";
import {
  assertClose,
  assertSameBits,
  floatBytes,
  matrix,
  promptPlan,
  smallestCache,
} from "@octavo/kernels/testing/op-harness";
import { SeededRandom } from "@octavo/kernels/testing/seeded-random";
import type { Gpu } from "./device/gpu.js";
import { openMatrixGpu, openTestGpu } from "./testing/software-gpu.js";
import { createWebGpuBackend } from "./webgpu-backend.js";

const gpu = await openTestGpu();
const plainGpu = await openTestGpu({ subgroups: false });
const matrixGpu = await openMatrixGpu();
const numRows = 40;

interface ProductCase {
  readonly cols: number;
  readonly isFused: boolean;
  /** What is normalised is a stream, to which the output of a block is added, normalised too. */
  readonly isPosted?: boolean;
}

/** Hidden rows of a product of 40 tokens, in steps of so many of them each. */
async function products(
  on: Gpu,
  { cols, isFused, isPosted = false }: ProductCase,
  counts: readonly number[],
  fusion = true,
): Promise<Float32Array[][]> {
  using backend = createWebGpuBackend(on, { fusion });
  const random = new SeededRandom(cols);
  const source = int8Source(64, cols, random);
  const table = await matrix(backend, numRows, cols, random.floats(numRows * cols));
  const vector = (): Vector =>
    backend.createVector([
      { type: "f32", length: cols, bytes: floatBytes(random.floats(cols)), name: "norm" },
    ]);
  const weight = vector();
  const update = isPosted ? ({ buffer: 4 } as const) : undefined;
  const posts: readonly Op[] =
    update === undefined
      ? []
      : [
          {
            op: "embedding",
            weight: await matrix(backend, numRows, cols, random.floats(numRows * cols)),
            out: update,
          },
          { op: "rms_norm", in: update, weight: vector(), out: update, eps: 1e-5, weightOffset: 1 },
        ];
  const width = isFused ? 32 : 64;
  using program = backend.compile({
    buffers: [cols, cols, 64, width, cols],
    ops: [
      { op: "embedding", weight: table, out: { buffer: 0 } },
      ...posts,
      ...(isFused
        ? ([
            {
              op: "rms_norm",
              in: update ?? { buffer: 0 },
              ...(update !== undefined && { residual: { buffer: 0 } }),
              weight,
              out: { buffer: 1 },
              eps: 1e-5,
            },
          ] as const)
        : []),
      {
        op: "linear",
        in: { buffer: isFused ? 1 : 0 },
        weight: await backend.createMatrix([source]),
        out: { buffer: isFused ? 2 : 3 },
      },
      ...(isFused
        ? ([{ op: "gated_activation", in: { buffer: 2 }, out: { buffer: 3 }, activation: "silu" }] as const)
        : []),
    ],
    hidden: { buffer: 3 },
    head: { weight: await matrix(backend, 1, width, new Float32Array(width)) },
    maxTokens: numRows,
  });
  using cache = backend.createKvCache(smallestCache);
  const found: Float32Array[][] = [];
  for (const count of counts) {
    const tokens = Array.from({ length: count }, (_, row) => row);
    const plan = promptPlan(
      tokens,
      tokens.map(() => ({ kind: "hidden" })),
    );
    const { rows } = await backend.execute(program, cache, plan);
    found.push(rows.map(({ hidden }) => hidden ?? new Float32Array()));
  }
  return found;
}

const cases: readonly (readonly [string, ProductCase])[] = [
  ["a ragged product", { cols: 328, isFused: false }],
  ["a product", { cols: 320, isFused: false }],
  ["a norm, a product and a gate in one", { cols: 320, isFused: true }],
  ["two norms, a product and a gate in one", { cols: 320, isFused: true, isPosted: true }],
];

/** Kernels of few and of many rows, and of attention in one part and in several, add in one order. */
for (const [unit, on] of [
  ["lanes", gpu],
  ["subgroup matrices", matrixGpu],
] as const)
  describe(`the same bits from every kernel on ${unit}`, { skip: typeof on === "string" && on }, () => {
    if (typeof on === "string") return;
    for (const [name, product] of cases)
      test(`of ${name}, for 1, 3, 8, 20 and ${numRows} rows`, async () => {
        const [all = [], ...others] = await products(on, product, [numRows, 1, 3, 8, 20]);
        for (const rows of others)
          for (const [row, values] of rows.entries())
            assertSameBits(values, all[row], `row ${row} of ${rows.length}`);
      });
  });

test(
  "the same bits with sums by subgroups as without",
  { skip: typeof gpu === "string" && gpu },
  async (t) => {
    if (typeof gpu === "string" || typeof plainGpu === "string") return;
    if (gpu.subgroupSize === undefined) return t.skip("subgroups of one size are not there");
    for (const [name, product] of cases.filter(([, { isFused }]) => isFused))
      for (const counts of [[numRows], [1]]) {
        const [expected = []] = await products(plainGpu, product, counts);
        const [found = []] = await products(gpu, product, counts);
        for (const [row, values] of found.entries())
          assertSameBits(values, expected[row], `${name}: row ${row}`);
      }
  },
);

test("fused norms give what they give apart", { skip: typeof gpu === "string" && gpu }, async () => {
  if (typeof gpu === "string") return;
  for (const [, product] of cases.filter(([, { isFused }]) => isFused)) {
    const before = gpu.counters.dispatches;
    const [found = []] = await products(gpu, product, [3]);
    const fused = gpu.counters.dispatches - before;
    const [expected = []] = await products(gpu, product, [3], false);
    assert.ok(fused < gpu.counters.dispatches - before - fused, "nothing was fused");
    for (const [row, values] of found.entries()) assertClose(values, expected[row] ?? [], 1e-5);
  }
});

/** Inputs and weights are rounded to f16: 2^-11 of each, and both factors of a gate. */
describe("subgroup matrices", { skip: typeof matrixGpu === "string" && matrixGpu }, () => {
  if (typeof matrixGpu === "string" || typeof gpu === "string") return;
  for (const [name, product] of cases)
    test(`give ${name} of f32, rounded`, async () => {
      const [expected = []] = await products(gpu, product, [numRows]);
      const [found = []] = await products(matrixGpu, product, [numRows]);
      for (const [row, values] of found.entries())
        assertClose(values, expected[row] ?? [], product.isFused ? 4e-3 : 1e-3);
    });
});

describe("the same bits from attention", { skip: typeof gpu === "string" && gpu }, () => {
  for (const [unit, on] of [
    ["lanes", gpu],
    ["matrix units", matrixGpu],
  ] as const)
    test(`over three segments on ${unit}: alone in a step, and among all tokens of the prompt`, async () => {
      if (typeof on === "string") return;
      using backend = createWebGpuBackend(on);
      const [numTokens, dim] = [530, 8];
      const random = new SeededRandom(3);
      const table = await matrix(backend, numTokens, 4 * dim, random.floats(numTokens * 4 * dim));
      const [q, k, v] = [
        { buffer: 0, column: 0, width: 2 * dim },
        { buffer: 0, column: 2 * dim, width: dim },
        { buffer: 0, column: 3 * dim, width: dim },
      ];
      const heads = { numHeads: 2, numKvHeads: 1, headDim: dim, scale: 0.3, layer: 0 };
      using program = backend.compile({
        buffers: [4 * dim, 2 * dim],
        ops: [
          { op: "embedding", weight: table, out: { buffer: 0 } },
          { op: "attention", q, k, v, out: { buffer: 1 }, ...heads },
        ],
        hidden: { buffer: 1 },
        head: { weight: await matrix(backend, 1, 2 * dim, new Float32Array(2 * dim)) },
        maxTokens: numTokens,
      });
      const tokens = Array.from({ length: numTokens }, (_, index) => index);
      const whole = promptPlan(
        tokens,
        tokens.map(() => ({ kind: "hidden" })),
      );
      const cacheSpec = {
        ...smallestCache,
        layers: [{ numKvHeads: 1, headDim: dim }],
        dtype: "f16",
      } as const;
      using cache = backend.createKvCache(cacheSpec);
      const all = await backend.execute(program, cache, whole);
      for (const position of [300, numTokens - 1]) {
        const alone = await backend.execute(program, cache, {
          ...whole,
          numTokens: 1,
          tokenIds: Int32Array.of(position),
          positions: Int32Array.of(position),
          slots: Int32Array.of(position),
          queryStarts: Int32Array.of(0, 1),
          contextLengths: Int32Array.of(position + 1),
          outputTokens: Int32Array.of(0),
          outputs: [{ kind: "hidden" }],
        });
        assertSameBits(alone.rows[0]?.hidden, all.rows[position]?.hidden, `position ${position}`);
      }
    });
});

function int8Source(rows: number, cols: number, random: SeededRandom): MatrixSource {
  const padded = Math.ceil(cols / 32) * 32;
  if (padded !== cols)
    return { type: "f32", rows, cols, bytes: floatBytes(random.floats(rows * cols)), name: "weight" };
  const data = new Uint8Array(
    Int8Array.from({ length: rows * cols }, () => random.integer(-127, 127)).buffer,
  );
  const scales = floatBytes(random.floats((rows * cols) / 32, 0.01));
  return { type: "int8", rows, cols, groupSize: 32, bytes: { data }, scales, name: "weight" };
}
