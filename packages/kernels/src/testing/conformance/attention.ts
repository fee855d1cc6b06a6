import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, KvDtype } from "../../backend.js";
import { assertClose, matrix, vector } from "../op-harness.js";
import { attend, type AttentionShape } from "../reference-ops.js";
import { RandomSchedule } from "../random-schedule.js";
import { SeededRandom } from "../seeded-random.js";

export interface AttentionCase extends AttentionShape {
  readonly dtype: KvDtype;
  readonly blockSize: number;
  readonly lengths: readonly number[];
  /** Tolerance relative to a row's largest value; the default depends on the cache's type. */
  readonly tolerance?: number;
  /** A second op attends to the layer that the first has written. */
  readonly isReadAgain?: true;
}

/** More than any window of the shapes that are run where steps are few. */
const fewPositions = 90;

/** Attention over random block tables and schedules that mix prefill chunks and decode, against plain double sums. */
export function attentionConformance(open: () => Backend, hasFewSteps = false): void {
  describe("attention", () => {
    const shapes: readonly (readonly [name: string, AttentionCase])[] = [
      [
        "one head of 8",
        {
          numHeads: 1,
          numKvHeads: 1,
          headDim: 8,
          scale: 0.35,
          dtype: "f32",
          blockSize: 16,
          lengths: [5, 70],
        },
      ],
      [
        "heads of 16, blocks of 1",
        {
          numHeads: 2,
          numKvHeads: 2,
          headDim: 16,
          scale: 0.25,
          dtype: "f32",
          blockSize: 1,
          lengths: [40, 9],
        },
      ],
      [
        "heads of 24, blocks of 8",
        { numHeads: 3, numKvHeads: 1, headDim: 24, scale: 0.2, dtype: "f16", blockSize: 8, lengths: [66, 3] },
      ],
      [
        "heads of 32, grouped by 7",
        {
          numHeads: 14,
          numKvHeads: 2,
          headDim: 32,
          scale: 0.18,
          dtype: "bf16",
          blockSize: 16,
          lengths: [130, 65, 1],
        },
      ],
      [
        "heads of 64, grouped by 4",
        {
          numHeads: 8,
          numKvHeads: 2,
          headDim: 64,
          scale: 0.125,
          dtype: "f32",
          blockSize: 16,
          lengths: [200, 64, 63],
        },
      ],
      [
        "heads of 80, blocks of 5",
        {
          numHeads: 2,
          numKvHeads: 1,
          headDim: 80,
          scale: 0.11,
          dtype: "f32",
          blockSize: 5,
          lengths: [81, 20],
        },
      ],
      [
        "heads of 96, blocks of 64",
        { numHeads: 4, numKvHeads: 4, headDim: 96, scale: 0.1, dtype: "f16", blockSize: 64, lengths: [129] },
      ],
      [
        "heads of 128, blocks of 128",
        {
          numHeads: 4,
          numKvHeads: 1,
          headDim: 128,
          scale: 0.09,
          dtype: "bf16",
          blockSize: 128,
          lengths: [150, 10],
        },
      ],
      [
        "heads of 256",
        { numHeads: 2, numKvHeads: 1, headDim: 256, scale: 0.06, dtype: "f32", blockSize: 16, lengths: [70] },
      ],
      [
        "bytes, heads of 48",
        {
          numHeads: 4,
          numKvHeads: 2,
          headDim: 48,
          scale: 0.15,
          dtype: "int8",
          blockSize: 16,
          lengths: [300, 20],
        },
      ],
      [
        "bytes, blocks of 7 and a window",
        {
          numHeads: 2,
          numKvHeads: 1,
          headDim: 24,
          scale: 0.2,
          dtype: "int8",
          blockSize: 7,
          lengths: [150],
          slidingWindow: 65,
        },
      ],
      ...(["f32", "f16", "bf16", "int8"] as const).flatMap((dtype) =>
        [2, 12, 20, 28, 100].map((headDim): [string, AttentionCase] => [
          `heads of ${headDim} in ${dtype}`,
          {
            numHeads: 4,
            numKvHeads: 2,
            headDim,
            scale: 1 / Math.sqrt(headDim),
            dtype,
            blockSize: headDim === 12 ? 3 : 16,
            lengths: [70, 9],
          },
        ]),
      ),
      [
        "a sliding window",
        {
          numHeads: 4,
          numKvHeads: 2,
          headDim: 32,
          scale: 0.18,
          dtype: "f32",
          blockSize: 16,
          lengths: [190, 30],
          slidingWindow: 17,
        },
      ],
      [
        "a window of one",
        {
          numHeads: 2,
          numKvHeads: 1,
          headDim: 16,
          scale: 0.3,
          dtype: "f32",
          blockSize: 4,
          lengths: [80],
          slidingWindow: 1,
        },
      ],
      [
        "a window wider than a chunk",
        {
          numHeads: 2,
          numKvHeads: 2,
          headDim: 16,
          scale: 0.3,
          dtype: "bf16",
          blockSize: 16,
          lengths: [260],
          slidingWindow: 100,
        },
      ],
      ...([17, 64, 100] as const).map((chunk): [string, AttentionCase] => [
        `chunks of ${chunk}`,
        {
          numHeads: 4,
          numKvHeads: 2,
          headDim: 32,
          scale: 0.18,
          dtype: chunk === 64 ? "int8" : "f32",
          blockSize: 16,
          lengths: [260, 30, 101],
          chunk,
        },
      ]),
      [
        "a soft cap",
        {
          numHeads: 4,
          numKvHeads: 2,
          headDim: 32,
          scale: 2,
          dtype: "f32",
          blockSize: 16,
          lengths: [90, 12],
          softCap: 5,
        },
      ],
      [
        "a soft cap and a window",
        {
          numHeads: 4,
          numKvHeads: 1,
          headDim: 40,
          scale: 1,
          dtype: "f16",
          blockSize: 32,
          lengths: [140],
          softCap: 30,
          slidingWindow: 50,
        },
      ],
      [
        "sinks, from nothing to all of a head's weight",
        {
          numHeads: 4,
          numKvHeads: 2,
          headDim: 32,
          scale: 0.3,
          dtype: "f32",
          blockSize: 16,
          lengths: [300, 20],
          sinks: [-40, 0.5, 8, 100],
        },
      ],
      [
        "sinks and a window",
        {
          numHeads: 2,
          numKvHeads: 1,
          headDim: 16,
          scale: 0.3,
          dtype: "bf16",
          blockSize: 16,
          lengths: [150],
          slidingWindow: 20,
          sinks: [1, -1],
        },
      ],
      [
        "scores far apart",
        {
          numHeads: 2,
          numKvHeads: 1,
          headDim: 64,
          scale: 8,
          dtype: "f32",
          blockSize: 16,
          lengths: [150],
          tolerance: 1e-4,
        },
      ],
      [
        "a layer that another op reads",
        {
          numHeads: 4,
          numKvHeads: 2,
          headDim: 32,
          scale: 0.2,
          dtype: "bf16",
          blockSize: 16,
          lengths: [40, 7],
          slidingWindow: 9,
          isReadAgain: true,
        },
      ],
      ...(["f32", "bf16", "int8"] as const).map((dtype): [string, AttentionCase] => [
        `heads of 512 in ${dtype}`,
        { numHeads: 2, numKvHeads: 1, headDim: 512, scale: 0.04, dtype, blockSize: 16, lengths: [70, 3] },
      ]),
    ];
    for (const [index, [name, shape]] of shapes.entries()) {
      if (hasFewSteps && index % 3 !== 0 && shape.isReadAgain !== true) continue;
      const lengths = shape.lengths.map((length) => (hasFewSteps ? Math.min(length, fewPositions) : length));
      test(name, () => compareAttention(open, { ...shape, lengths }, index));
    }
  });
}

/** Caches in bf16 and int8 allow bf16 queries and softmax numerators: 2^-9 of each, of values that partly cancel. */
const tolerances: Readonly<Record<KvDtype, number>> = { f32: 1e-5, f16: 1e-5, bf16: 2e-2, int8: 2e-2 };

export async function compareAttention(
  open: () => Backend,
  shape: AttentionCase,
  seed: number,
): Promise<void> {
  using backend = open();
  const random = new SeededRandom(seed);
  const { numHeads, numKvHeads, headDim, lengths, blockSize } = shape;
  const qWidth = numHeads * headDim;
  const kvWidth = numKvHeads * headDim;
  const { valueDim } = shape;
  const width = qWidth + (valueDim === undefined ? 2 : 1) * kvWidth;
  const outWidth = numHeads * (valueDim ?? headDim);
  const numTokens = lengths.reduce((sum, length) => sum + length, 0);
  const rows = Array.from({ length: numTokens }, () => random.floats(width));
  const table = await matrix(
    backend,
    numTokens,
    width,
    rows.flatMap((row) => [...row]),
  );
  const attends = {
    op: "attention",
    ...attentionShape(shape),
    ...(shape.sinks !== undefined && { sinks: vector(backend, shape.sinks) }),
    layer: 1,
  } as const;
  using program = backend.compile({
    buffers: [width, outWidth, outWidth],
    ops: [
      { op: "embedding", weight: table, out: { buffer: 0 } },
      {
        ...attends,
        q: { buffer: 0, column: 0, width: qWidth },
        k: { buffer: 0, column: qWidth, width: kvWidth },
        ...(valueDim === undefined
          ? { v: { buffer: 0, column: qWidth + kvWidth, width: kvWidth } }
          : { valueDim }),
        out: { buffer: shape.isReadAgain === true ? 2 : 1 },
      },
      // Another op may read what this one has written.
      ...(shape.isReadAgain === true
        ? [{ ...attends, q: { buffer: 0, column: 0, width: qWidth }, out: { buffer: 1 } } as const]
        : []),
      { op: "gather", in: { buffer: 1 }, out: { buffer: 1 } },
    ],
    hidden: { buffer: 1 },
    head: { weight: await matrix(backend, 1, outWidth, new Float32Array(outWidth)) },
    maxTokens: numTokens,
  });
  const schedule = new RandomSchedule(random, lengths, blockSize);
  using cache = backend.createKvCache({
    // Layers may differ.
    layers: [
      { numKvHeads: 3, headDim: 6 },
      { numKvHeads, headDim, ...(valueDim !== undefined && { isLatent: true }) },
    ],
    numBlocks: schedule.numBlocks,
    blockSize,
    dtype: shape.dtype,
  });
  let numChecked = 0;
  for (let step = schedule.next(); step !== undefined; step = schedule.next()) {
    const result = await backend.execute(program, cache, step.plan);
    for (const [index, { sequence, position }] of step.rows.entries()) {
      const start = lengths.slice(0, sequence).reduce((sum, length) => sum + length, 0);
      const known = rows.slice(start, start + position + 1);
      const expected = attend(
        shape,
        shape.dtype,
        position,
        rows[start + position]?.subarray(0, qWidth) ?? [],
        known.map((row) => row.subarray(qWidth, qWidth + kvWidth)),
        known.map((row) => row.subarray(valueDim === undefined ? qWidth + kvWidth : qWidth)),
      );
      assertClose(result.rows[index]?.hidden ?? [], expected, shape.tolerance ?? tolerances[shape.dtype]);
      numChecked += 1;
    }
  }
  assert.equal(numChecked, numTokens);
}

function attentionShape({
  numHeads,
  numKvHeads,
  headDim,
  scale,
  slidingWindow,
  chunk,
  softCap,
}: AttentionCase): Omit<AttentionShape, "sinks"> {
  return {
    numHeads,
    numKvHeads,
    headDim,
    scale,
    ...(slidingWindow !== undefined && { slidingWindow }),
    ...(chunk !== undefined && { chunk }),
    ...(softCap !== undefined && { softCap }),
  };
}
