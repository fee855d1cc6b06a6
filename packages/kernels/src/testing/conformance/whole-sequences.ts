import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, KvDtype, Op, OutputRow, ProgramSpec, RowPooling, StepPlan } from "../../backend.js";
import { assertClose, assertSameBits, matrix, smallestCache } from "../op-harness.js";
import { attend, type AttentionShape } from "../reference-ops.js";
import { SeededRandom } from "../seeded-random.js";

const blockSize = 16;

type Sight = Omit<AttentionShape, "sinks">;

/** A step of whole sequences of these lengths, each in blocks of its own from the last one down; token ids count all tokens. */
export function wholePlan(
  lengths: readonly number[],
  outputs: StepPlan["outputs"],
  outputTokens: number[],
): StepPlan {
  const starts = lengths.map((_, index) => lengths.slice(0, index).reduce((sum, length) => sum + length, 0));
  const numBlocks = lengths.map((length) => Math.ceil(length / blockSize));
  const tableStarts = [0];
  for (const count of numBlocks) tableStarts.push((tableStarts.at(-1) ?? 0) + count);
  const total = tableStarts.at(-1) ?? 0;
  const blockTables = Int32Array.from({ length: total }, (_, index) => total - 1 - index);
  const numTokens = lengths.reduce((sum, length) => sum + length, 0);
  const positions = lengths.flatMap((length) => Array.from({ length }, (_, position) => position));
  const slots = lengths.flatMap((length, sequence) =>
    Array.from({ length }, (_, position) => {
      const block = blockTables[(tableStarts[sequence] ?? 0) + Math.floor(position / blockSize)] ?? 0;
      return block * blockSize + (position % blockSize);
    }),
  );
  return {
    numTokens,
    numSequences: lengths.length,
    tokenIds: Int32Array.from({ length: numTokens }, (_, token) => token),
    positions: Int32Array.from(positions),
    slots: Int32Array.from(slots),
    queryStarts: Int32Array.from([...starts, numTokens]),
    contextLengths: Int32Array.from(lengths),
    blockTables,
    blockTableStarts: Int32Array.from(tableStarts),
    outputTokens: Int32Array.from(outputTokens),
    outputs,
  };
}

export const attentionTolerances: Readonly<Record<KvDtype, number>> = {
  f32: 1e-5,
  f16: 1e-5,
  bf16: 2e-2,
  int8: 2e-2,
};

/** What encoders need: attention to tokens that come later, embeddings of positions and types, pooled rows, no output head. */
export function wholeSequencesConformance(open: () => Backend, hasFewSteps = false): void {
  describe("whole sequences", () => {
    const shape = { numHeads: 4, numKvHeads: 2, headDim: 32, scale: 0.18 };
    const seen: readonly (readonly [string, Sight])[] = [
      ["all of the sequence", { ...shape, lookAhead: 1024 }],
      ["a window to both sides", { ...shape, slidingWindow: 9, lookAhead: 8 }],
      ["a window wider than a chunk to both sides", { ...shape, slidingWindow: 71, lookAhead: 70 }],
      ["heads of 20, one token ahead", { ...shape, headDim: 20, slidingWindow: 3, lookAhead: 1 }],
    ];
    for (const [index, [name, sight]] of seen.entries()) {
      for (const [at, dtype] of (["f32", "bf16", "int8"] as const).entries())
        if (!hasFewSteps || at === index % 3)
          test(`attention sees ${name}, over ${dtype}`, () => checkSight(open, sight, dtype, index));
    }

    test("embeddings of positions and types, with offsets", async () => {
      using backend = open();
      const random = new SeededRandom(5);
      const [tokens, positions, types] = [[40, 0] as const, [34, 2] as const, [2, 0] as const].map(
        ([rows, offset]) => ({ rows, offset, values: random.floats(rows * 8) }),
      );
      assert.ok(tokens && positions && types);
      const lookUp = async (
        { rows, offset, values }: typeof tokens,
        of: "position" | "type" | undefined,
        buffer: number,
      ): Promise<Op> => ({
        op: "embedding",
        weight: await matrix(backend, rows, 8, values),
        out: { buffer },
        offset,
        ...(of && { of }),
      });
      const spec: ProgramSpec = {
        buffers: [8, 8, 8],
        ops: [
          await lookUp(tokens, undefined, 0),
          await lookUp(positions, "position", 1),
          await lookUp(types, "type", 2),
          { op: "add", in: { buffer: 1 }, out: { buffer: 0 } },
          { op: "add", in: { buffer: 2 }, out: { buffer: 0 } },
        ],
        hidden: { buffer: 0 },
        maxTokens: 40,
      };
      using program = backend.compile(spec);
      using cache = backend.createKvCache(smallestCache);
      const outputs: OutputRow[] = Array.from({ length: 40 }, () => ({ kind: "hidden" }));
      const plan = wholePlan([32, 8], outputs, [...outputs.keys()]);
      const tokenTypes = Int32Array.from({ length: 40 }, (_, token) => (token % 3 === 0 ? 1 : 0));
      const { rows } = await backend.execute(program, cache, { ...plan, tokenTypes });
      for (const [token, row] of rows.entries()) {
        const position = (token < 32 ? token : token - 32) + 2;
        const type = token % 3 === 0 ? 1 : 0;
        const expected = Array.from(
          { length: 8 },
          (_, i) =>
            (tokens.values[token * 8 + i] ?? 0) +
            (positions.values[position * 8 + i] ?? 0) +
            (types.values[type * 8 + i] ?? 0),
        );
        assertClose(row.hidden ?? [], expected, 1e-6);
      }
      await assert.rejects(backend.execute(program, cache, { ...plan, tokenTypes: tokenTypes.fill(2) }), {
        message: /tokenTypes\[0\] is 2; the model knows types 0 to 1/,
      });
      const far = wholePlan([33], outputs.slice(0, 33), [...outputs.keys()].slice(0, 33));
      await assert.rejects(backend.execute(program, cache, far), {
        message: /positions\[32\] is 32; the model knows positions 0 to 31/,
      });
      const sample: OutputRow = { kind: "score", target: 0, numLogprobs: 0 };
      await assert.rejects(backend.execute(program, cache, wholePlan([3], [sample], [2])), {
        message: /the program has no output head/,
      });
      const pooled: OutputRow = { kind: "hidden", pool: { kind: "mean", tokens: 3 } };
      await assert.rejects(backend.execute(program, cache, wholePlan([3], [pooled], [2])), {
        message: /is pooled, but the program gathers no rows/,
      });
    });

    test("gathered rows are means and largest values of as many as an output says", async () => {
      using backend = open();
      const lengths = [5, 1, 70, 16];
      const numTokens = lengths.reduce((sum, length) => sum + length);
      const random = new SeededRandom(6);
      const rows = Array.from({ length: numTokens }, () => random.floats(24));
      const weight = await matrix(
        backend,
        numTokens,
        24,
        rows.flatMap((row) => [...row]),
      );
      using program = backend.compile({
        buffers: [24, 24],
        ops: [
          { op: "embedding", weight, out: { buffer: 0 } },
          { op: "gather", in: { buffer: 0 }, out: { buffer: 1 } },
        ],
        hidden: { buffer: 1 },
        maxTokens: numTokens,
      });
      using cache = backend.createKvCache(smallestCache);
      const ends = lengths.map((_, i) => lengths.slice(0, i + 1).reduce((sum, length) => sum + length) - 1);
      for (const kind of ["mean", "max"] as const) {
        const outputs = lengths.map((tokens): OutputRow => ({ kind: "hidden", pool: { kind, tokens } }));
        const result = await backend.execute(program, cache, wholePlan(lengths, outputs, ends));
        for (const [index, tokens] of lengths.entries()) {
          const own = rows.slice((ends[index] ?? 0) + 1 - tokens, (ends[index] ?? 0) + 1);
          assertClose(result.rows[index]?.hidden ?? [], pool(kind, own), 1e-6);
        }
      }
      const mixed: OutputRow[] = [{ kind: "hidden", pool: { kind: "mean", tokens: 6 } }];
      await assert.rejects(backend.execute(program, cache, wholePlan(lengths, mixed, [4])), {
        message: /outputs\[0\]\.pool\.tokens must be an integer from 1 to 5, not 6/,
      });
    });
  });
}

function pool(kind: RowPooling["kind"], rows: readonly Float32Array[]): number[] {
  return Array.from(rows[0] ?? [], (_, column) => {
    const values = rows.map((row) => row[column] ?? 0);
    return kind === "max" ? Math.max(...values) : values.reduce((sum, value) => sum + value) / rows.length;
  });
}

/** Against plain double sums; and each sequence alone gives the bits that it has beside others. */
async function checkSight(open: () => Backend, shape: Sight, dtype: KvDtype, seed: number): Promise<void> {
  using backend = open();
  const { numHeads, numKvHeads, headDim } = shape;
  const lengths = [3, 90, 1, 200];
  const numTokens = lengths.reduce((sum, length) => sum + length);
  const [qWidth, kvWidth] = [numHeads * headDim, numKvHeads * headDim];
  const width = qWidth + 2 * kvWidth;
  const random = new SeededRandom(seed);
  const rows = Array.from({ length: numTokens }, () => random.floats(width));
  const table = await matrix(
    backend,
    numTokens,
    width,
    rows.flatMap((row) => [...row]),
  );
  using program = backend.compile({
    buffers: [width, qWidth],
    ops: [
      { op: "embedding", weight: table, out: { buffer: 0 } },
      {
        op: "attention",
        ...shape,
        q: { buffer: 0, column: 0, width: qWidth },
        k: { buffer: 0, column: qWidth, width: kvWidth },
        v: { buffer: 0, column: qWidth + kvWidth, width: kvWidth },
        out: { buffer: 1 },
        layer: 0,
      },
    ],
    hidden: { buffer: 1 },
    maxTokens: numTokens,
  });
  const spec = { layers: [{ numKvHeads, headDim }], numBlocks: 40, blockSize, dtype };
  using cache = backend.createKvCache(spec);
  const outputs: OutputRow[] = rows.map(() => ({ kind: "hidden" }));
  const together = await backend.execute(program, cache, wholePlan(lengths, outputs, [...rows.keys()]));
  let start = 0;
  for (const length of lengths) {
    const own = rows.slice(start, start + length);
    const aloneTokens = Int32Array.from({ length }, (_, token) => start + token);
    const alonePlan = wholePlan([length], outputs.slice(0, length), [...own.keys()]);
    const alone = await backend.execute(program, cache, { ...alonePlan, tokenIds: aloneTokens });
    for (let position = 0; position < length; position += length > 50 ? 13 : 1) {
      const hidden = together.rows[start + position]?.hidden;
      const expected = attend(
        shape,
        dtype,
        position,
        own[position]?.subarray(0, qWidth) ?? [],
        own.map((row) => row.subarray(qWidth, qWidth + kvWidth)),
        own.map((row) => row.subarray(qWidth + kvWidth)),
      );
      assertClose(hidden ?? [], expected, attentionTolerances[dtype]);
      assertSameBits(hidden, alone.rows[position]?.hidden, `position ${position} of ${length}`);
    }
    start += length;
  }
}
