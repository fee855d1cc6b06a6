import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { weightTypes, type WeightType } from "@octavo/kernels";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openMatrixGpu, openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { assertClose, matrix, promptPlan, smallestCache, vector } from "@octavo/kernels/testing/op-harness";
import { SeededRandom } from "@octavo/kernels/testing/seeded-random";
import { isGrouped } from "@octavo/artifacts/testing/dequantize";
import { randomMatrix } from "../testing/random-matrix.js";

const [gpu, matrixGpu] = [await openTestGpu(), await openMatrixGpu()];

/** More where somebody looks for what is wrong: OCTAVO_TEST_SEEDS=FROM-TO. */
const [from, to] = (process.env["OCTAVO_TEST_SEEDS"] ?? "0-11").split("-").map(Number);

/** Types whose groups divide the columns in whole units of packing. */
const plainGroups: ReadonlySet<WeightType> = new Set(["int2", "int3", "int4", "int8"]);
/** Types that a GPU keeps as f16. */
const rounded: ReadonlySet<WeightType> = new Set(["f8_e4m3", "uint8", "table4", "iq4_nl", "iq4_xs", "mxfp4"]);

/** Products of random shapes, in a layer or as the output head, against plain double sums over the same bytes. */
describe("products on the WebGPU backend", { skip: typeof gpu === "string" && gpu }, () => {
  if (typeof gpu === "string" || typeof matrixGpu === "string") return;
  for (let seed = from ?? 0; seed <= (to ?? 0); seed++) {
    const product = randomProduct(seed);
    const { type, rows, cols, groupSize, tokens, asHead, inColumn, outColumn, hasBias, onUnits } = product;
    const name = `${tokens} x ${cols} by ${rows} of ${type}${groupSize === undefined ? "" : ` in groups of ${groupSize}`}`;
    test(`${seed}: ${name}${asHead ? ", the head" : ""}${onUnits ? ", on matrix units" : ""}`, async () => {
      using backend = createWebGpuBackend(onUnits ? matrixGpu : gpu);
      const random = new SeededRandom(seed);
      const { source, expected: weights } = randomMatrix(type, product.isOther, product, random);
      const width = inColumn + cols;
      const inputs = random.floats(tokens * width);
      const bias = hasBias ? random.floats(rows) : undefined;
      const weight = await backend.createMatrix([source]);
      const biasOf = bias === undefined ? {} : { bias: vector(backend, bias) };
      const input = { buffer: 0, column: inColumn, width: cols } as const;
      const embedding = {
        op: "embedding",
        weight: await matrix(backend, tokens, width, inputs),
        out: { buffer: 0 },
      } as const;
      const output = { buffer: 1, column: outColumn, width: rows } as const;
      using program = backend.compile({
        buffers: [width, outColumn + rows + 3],
        ops: asHead ? [embedding] : [embedding, { op: "linear", in: input, weight, out: output, ...biasOf }],
        hidden: asHead ? input : output,
        ...(asHead && { head: { weight, ...biasOf } }),
        maxTokens: tokens,
      });
      using cache = backend.createKvCache({ ...smallestCache, numBlocks: 32 });
      const ids = Array.from({ length: tokens }, (_, token) => token);
      const rowOf = asHead
        ? ({ kind: "score", target: 0, numLogprobs: 0 } as const)
        : ({ kind: "hidden" } as const);
      const plan = {
        ...promptPlan(
          ids,
          ids.map(() => rowOf),
        ),
        wantLogits: asHead,
      };
      const found = await backend.execute(program, cache, plan);
      const tolerance = onUnits ? 4e-3 : rounded.has(type) || source.columnOrder !== undefined ? 1e-3 : 2e-5;
      for (const [token, { hidden, logits }] of found.rows.entries()) {
        const expected = Array.from({ length: rows }, (_, row) => {
          let sum = bias?.[row] ?? 0;
          for (let i = 0; i < cols; i++)
            sum += (inputs[token * width + inColumn + i] ?? 0) * (weights[row * cols + i] ?? 0);
          return sum;
        });
        assert.ok(hidden ?? logits, `token ${token}`);
        assertClose(hidden ?? logits ?? [], expected, tolerance);
      }
    });
  }
});

function randomProduct(seed: number) {
  const random = new SeededRandom(1000 + seed);
  const type = random.pick(Object.keys(weightTypes) as WeightType[]);
  const block = weightTypes[type].columns;
  const isPlain = plainGroups.has(type);
  const groupSize = isPlain
    ? 32 * random.integer(1, 5)
    : isGrouped(type)
      ? random.pick([7, 32, 48, 100, 128])
      : undefined;
  const unit = isPlain ? (groupSize ?? 32) : block;
  const cols = unit * random.integer(1, Math.max(1, Math.floor(400 / unit)));
  return {
    type,
    cols,
    ...(groupSize !== undefined && { groupSize }),
    rows: random.integer(1, 150),
    tokens: random.pick([1, 2, 3, 5, 9, 31, 33, 65, 257]),
    isOther: isGrouped(type) && random.integer(0, 1) === 1,
    asHead: random.integer(0, 2) === 0,
    hasBias: random.integer(0, 1) === 1,
    inColumn: random.pick([0, 0, 4, 1, 3]),
    outColumn: random.integer(0, 5),
    /** Inputs and weights are rounded to f16 there, but for shapes that stay on lanes. */
    onUnits: seed % 3 === 2,
  };
}
