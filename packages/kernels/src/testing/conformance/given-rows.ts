import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, KvDtype, Op, OutputRow, ProgramSpec, StepPlan } from "../../backend.js";
import { assertClose, assertSameBits, matrix, smallestCache } from "../op-harness.js";
import { attend } from "../reference-ops.js";
import { SeededRandom } from "../seeded-random.js";
import { attentionTolerances, wholePlan } from "./whole-sequences.js";

const hiddenRows = (length: number): OutputRow[] => Array.from({ length }, () => ({ kind: "hidden" }));

/** What images need: rows in the place of embedded ids, and tokens that see others behind themselves; and rows that are sent. */
export function givenRowsConformance(open: () => Backend): void {
  describe("given rows", () => {
    test("stand in the place of embedded ids, unscaled", async () => {
      using backend = open();
      const random = new SeededRandom(3);
      const table = random.floats(12 * 8);
      using program = backend.compile({
        buffers: [8],
        ops: [
          {
            op: "embedding",
            weight: await matrix(backend, 12, 8, table),
            out: { buffer: 0 },
            scale: 3,
            takesGiven: true,
          },
        ],
        hidden: { buffer: 0 },
        maxTokens: 12,
      });
      using cache = backend.createKvCache(smallestCache);
      const plan = wholePlan([7, 5], hiddenRows(12), [...Array(12).keys()]);
      const given = { tokens: Int32Array.of(2, 3, 8), rows: random.floats(3 * 8) };
      const { rows } = await backend.execute(program, cache, { ...plan, given });
      for (const [token, row] of rows.entries()) {
        const at = given.tokens.indexOf(token);
        const own = table.subarray(token * 8, (token + 1) * 8).map((value) => value * 3);
        assertClose(row.hidden ?? [], at < 0 ? own : given.rows.subarray(at * 8, (at + 1) * 8), 1e-6);
      }
      const refuse = (wrong: Partial<StepPlan>, message: RegExp): Promise<void> =>
        assert.rejects(backend.execute(program, cache, { ...plan, ...wrong }), {
          code: "invalid_request",
          message,
        });
      await refuse({ given: { ...given, rows: new Float32Array(23) } }, /23 elements; 3 rows of 8/);
      await refuse({ given: { ...given, tokens: Int32Array.of(2, 2, 8) } }, /given\.tokens\[1\] is 2/);
      await refuse({ given: { ...given, tokens: Int32Array.of(2, 3, 12) } }, /given\.tokens\[2\] is 12/);
      const own = [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4];
      await refuse(
        { lastSeen: Int32Array.from(own.with(9, 5)) },
        /lastSeen\[9\] is 5; the token stands at 2 of 5/,
      );
      await refuse({ lastSeen: Int32Array.from(own.with(1, 0)) }, /lastSeen\[1\] is 0/);
      await refuse({ lastSeen: new Int32Array(3) }, /lastSeen has 3 elements/);
    });

    test("what a program sends comes back, unless the step leaves it out", async () => {
      using backend = open();
      const table = [1, 2, 3, 4, 5, 6];
      const weight = await matrix(backend, 3, 2, table);
      using program = backend.compile({
        buffers: [2],
        ops: [
          { op: "embedding", weight, out: { buffer: 0 } },
          { op: "send", in: { buffer: 0 } },
          { op: "scale", on: { buffer: 0 }, factor: 2 },
          { op: "send", in: { buffer: 0 } },
        ],
        hidden: { buffer: 0 },
        maxTokens: 3,
      });
      using cache = backend.createKvCache(smallestCache);
      const plan = wholePlan([3], hiddenRows(1), [2]);
      const whole = await backend.execute(program, cache, plan);
      assert.deepEqual([...(whole.sent ?? [])], [...table, ...table.map((value) => 2 * value)]);
      const without = await backend.execute(program, cache, { ...plan, withoutSent: true });
      assert.equal(without.sent, undefined);
      assert.deepEqual(without.rows, whole.rows);
    });

    test("a step in parts gives the same bits, with steps of other programs between them", async () => {
      using backend = open();
      const random = new SeededRandom(4);
      const weight = await matrix(backend, 40, 40, random.floats(1600));
      const ops: Op[] = [
        { op: "embedding", weight, out: { buffer: 0 }, takesGiven: true },
        ...Array.from({ length: 5 }, (_, at): Op => {
          const [from, to] = [{ buffer: at % 2 }, { buffer: (at + 1) % 2 }];
          return { op: "linear", in: from, weight, out: to };
        }),
      ];
      const spec = { buffers: [40, 40], ops, hidden: { buffer: 1 }, maxTokens: 12 };
      using program = backend.compile(spec);
      using other = backend.compile(spec);
      using cache = backend.createKvCache(smallestCache);
      const plan = wholePlan([12], hiddenRows(12), [...Array(12).keys()]);
      const whole = await backend.execute(program, cache, plan);
      const shifted = { ...plan, tokenIds: plan.tokenIds.map((token) => token + 3) };
      await backend.execute(program, cache, shifted);
      for (const count of [2, 3, 9]) {
        for (let index = 0; index < count - 1; index++) {
          await backend.execute(program, cache, { ...plan, part: { index, count }, outputs: [] });
          await backend.execute(other, cache, shifted);
        }
        const last = await backend.execute(program, cache, { ...plan, part: { index: count - 1, count } });
        for (const [token, row] of whole.rows.entries())
          assertSameBits(last.rows[token]?.hidden, row.hidden, `token ${token} in ${count} parts`);
      }
      const refuse = (index: number, count: number, message: RegExp): Promise<void> =>
        assert.rejects(backend.execute(program, cache, { ...plan, part: { index, count } }), { message });
      await refuse(2, 2, /part\.index/);
      await refuse(0, 0, /part\.count/);
      await refuse(0, 2, /Only the last part of a step has output rows/);
    });

    test("are added by those ops that add them, to their tokens alone", async () => {
      using backend = open();
      const random = new SeededRandom(5);
      const table = random.floats(12 * 8);
      const weight = await matrix(backend, 12, 8, table);
      const ops: Op[] = [
        { op: "embedding", weight, out: { buffer: 0 }, takesGiven: true },
        { op: "add_given", on: { buffer: 0 }, index: 0 },
        { op: "add_given", on: { buffer: 0, column: 0, width: 8 }, index: 1 },
      ];
      const spec = { buffers: [8], ops, hidden: { buffer: 0 }, maxTokens: 12 };
      using program = backend.compile(spec);
      using cache = backend.createKvCache(smallestCache);
      const plan = wholePlan([7, 5], hiddenRows(12), [...Array(12).keys()]);
      const tokens = Int32Array.of(2, 8);
      const [rows, added] = [random.floats(2 * 8), random.floats(4 * 8)];
      const found = await backend.execute(program, cache, { ...plan, given: { tokens, rows, added } });
      for (const [token, row] of found.rows.entries()) {
        const at = tokens.indexOf(token);
        const expected = Array.from({ length: 8 }, (_, column) => {
          if (at < 0) return table[token * 8 + column] ?? 0;
          const of = at * 8 + column;
          return (rows[of] ?? 0) + (added[of] ?? 0) + (added[16 + of] ?? 0);
        });
        assertClose(row.hidden ?? [], expected, 1e-6);
      }
      const without = await backend.execute(program, cache, plan);
      assertSameBits(without.rows[3]?.hidden, table.subarray(24, 32), "no token is given");
      await assert.rejects(backend.execute(program, cache, { ...plan, given: { tokens, rows } }), {
        code: "invalid_request",
        message: /given\.added has 0 elements; the program adds 32/,
      });
      assert.throws(() => backend.compile({ ...spec, ops: [ops[0]!, ops[2]!] }), /index/);
      const narrow: Op = { op: "add_given", on: { buffer: 0, column: 2, width: 4 }, index: 1 };
      assert.throws(() => backend.compile({ ...spec, ops: [...ops.slice(0, 2), narrow] }), /width of on/);
    });

    test("rotations go along the step's axes, and by the position without them", async () => {
      using backend = open();
      const random = new SeededRandom(6);
      const weight = await matrix(backend, 12, 8, random.floats(12 * 8));
      const inverseFrequencies = Float32Array.of(1, 0.5, 0.25, 0.125);
      const rotated = (axes?: Uint8Array): Op[] => [
        { op: "embedding", weight, out: { buffer: 0 } },
        {
          op: "rope",
          on: { buffer: 0 },
          headDim: 8,
          rope: {
            inverseFrequencies,
            attentionFactor: 1,
            layout: "neox",
            ...(axes !== undefined && { axes }),
          },
        },
      ];
      const spec = { buffers: [8], hidden: { buffer: 0 }, maxTokens: 12 };
      using byAxes = backend.compile({ ...spec, ops: rotated(Uint8Array.of(0, 1, 2, 0)) });
      using plain = backend.compile({ ...spec, ops: rotated() });
      using cache = backend.createKvCache(smallestCache);
      const plan = wholePlan([12], hiddenRows(12), [...Array(12).keys()]);
      const hidden = async (program: typeof plain, more: Partial<StepPlan> = {}): Promise<Float32Array[]> =>
        (await backend.execute(program, cache, { ...plan, ...more })).rows.map(
          (row) => row.hidden ?? new Float32Array(0),
        );
      const base = await hidden(plain);
      for (const [token, row] of (await hidden(byAxes)).entries())
        assertSameBits(row, base[token], "no axes");
      const axes = Int32Array.from({ length: 36 }, (_, at) => (5 * at) % 7);
      const found = await hidden(byAxes, { axes });
      for (const [token, row] of found.entries())
        for (const [pair, axis] of [0, 1, 2, 0].entries()) {
          const angle = (axes[3 * token + axis] ?? 0) * (inverseFrequencies[pair] ?? 0);
          const own = token * (inverseFrequencies[pair] ?? 0);
          // What the position turned, turned back, and by the axis
          const turn = angle - own;
          const [x = 0, y = 0] = [base[token]?.[pair], base[token]?.[pair + 4]];
          assertClose(
            [row[pair] ?? NaN, row[pair + 4] ?? NaN],
            [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)],
            1e-5,
          );
        }
      await assert.rejects(hidden(byAxes, { axes: axes.subarray(1) }), /axes has 35 elements/);
      assert.throws(() => backend.compile({ ...spec, ops: rotated(Uint8Array.of(0, 1, 3, 0)) }), /axes/);
      assert.throws(() => backend.compile({ ...spec, ops: rotated(Uint8Array.of(0, 1)) }), /axes/);
    });

    for (const [dtype, slidingWindow] of [
      ["f32", undefined],
      ["f32", 40],
      ["bf16", 40],
      ["int8", undefined],
    ] as const)
      test(`tokens see to the end of their image, ${slidingWindow === undefined ? "all of the context" : "within a window"}, over ${dtype}`, () =>
        checkImages(open, dtype, slidingWindow));
  });
}

/** Images of a sequence: [first, end). They cross borders of chunks and of tiles. */
const images = [
  [10, 20],
  [60, 190],
] as const;
const length = 200;
const shape = { numHeads: 4, numKvHeads: 2, headDim: 32, scale: 0.18 };
const [queryWidth, kvWidth] = [shape.numHeads * shape.headDim, shape.numKvHeads * shape.headDim];

/** Against plain double sums; and whole, in steps and beside another sequence, the same bits. */
async function checkImages(
  open: () => Backend,
  dtype: KvDtype,
  slidingWindow: number | undefined,
): Promise<void> {
  using backend = open();
  const width = queryWidth + 2 * kvWidth;
  const random = new SeededRandom(8);
  const rows = Array.from({ length }, () => random.floats(width));
  const sight = { ...shape, ...(slidingWindow !== undefined && { slidingWindow }) };
  const weight = await matrix(
    backend,
    length,
    width,
    rows.flatMap((row) => [...row]),
  );
  const spec = (isCausal: boolean): ProgramSpec => ({
    buffers: [width, queryWidth],
    ops: [
      { op: "embedding", weight, out: { buffer: 0 } },
      {
        op: "attention",
        ...sight,
        ...(isCausal && { isCausal: true }),
        q: { buffer: 0, column: 0, width: queryWidth },
        k: { buffer: 0, column: queryWidth, width: kvWidth },
        v: { buffer: 0, column: queryWidth + kvWidth, width: kvWidth },
        out: { buffer: 1 },
        layer: 0,
      },
    ],
    hidden: { buffer: 1 },
    maxTokens: 2 * length,
  });
  using program = backend.compile(spec(false));
  using causal = backend.compile(spec(true));
  const layers = [{ numKvHeads: shape.numKvHeads, headDim: shape.headDim }];
  using cache = backend.createKvCache({ layers, numBlocks: 40, blockSize: 16, dtype });
  const lastSeen = Int32Array.from({ length }, (_, position) => {
    const image = images.find(([first, end]) => first <= position && position < end);
    return image === undefined ? position : image[1] - 1;
  });
  const run = async (plan: StepPlan, by = program): Promise<(Float32Array | undefined)[]> =>
    (await backend.execute(by, cache, plan)).rows.map((row) => row.hidden);
  const whole = await run({ ...planOf(0, length), lastSeen });
  for (const position of [0, 9, 10, 15, 19, 20, 59, 60, 63, 64, 100, 127, 128, 189, 190, 199]) {
    const expected = attend(
      { ...sight, lookAhead: (lastSeen[position] ?? 0) - position },
      dtype,
      position,
      rows[position]?.subarray(0, queryWidth) ?? [],
      rows.map((row) => row.subarray(queryWidth, queryWidth + kvWidth)),
      rows.map((row) => row.subarray(queryWidth + kvWidth)),
    );
    assertClose(whole[position] ?? [], expected, attentionTolerances[dtype]);
  }
  const blind = await run(planOf(0, length));
  for (const [position, row] of (await run({ ...planOf(0, length), lastSeen }, causal)).entries())
    assertSameBits(row, blind[position], `position ${position}, causal`);
  const steps: (Float32Array | undefined)[] = [];
  for (const [from, to] of [
    [0, 7],
    [7, 25],
    [25, 60],
    [60, 190],
    [190, 191],
    [191, 200],
  ] as const)
    steps.push(...(await run({ ...planOf(from, to), lastSeen: lastSeen.slice(from, to) })));
  const both = wholePlan(
    [30, length],
    hiddenRows(length),
    [...rows.keys()].map((row) => 30 + row),
  );
  const beside = await run({
    ...both,
    tokenIds: both.tokenIds.map((_, token) => (token < 30 ? token : token - 30)),
    lastSeen: Int32Array.from([...Array(30).keys(), ...lastSeen]),
  });
  for (const [position, row] of whole.entries()) {
    assertSameBits(steps[position], row, `position ${position} in steps`);
    assertSameBits(beside[position], row, `position ${position} beside another`);
  }
}

/** Positions [from, to) of the sequence; those before were computed by earlier steps. */
function planOf(from: number, to: number): StepPlan {
  const outputs = hiddenRows(to - from);
  const plan = wholePlan([to], outputs, [...outputs.keys()]);
  // Blocks of a shorter sequence would lie elsewhere.
  const numBlocks = Math.ceil(length / 16);
  const blockTables = Int32Array.from({ length: numBlocks }, (_, block) => block);
  return {
    ...plan,
    numTokens: to - from,
    tokenIds: plan.tokenIds.slice(from),
    positions: plan.positions.slice(from),
    slots: Int32Array.from({ length: to - from }, (_, index) => from + index),
    queryStarts: Int32Array.of(0, to - from),
    blockTables,
    blockTableStarts: Int32Array.of(0, numBlocks),
  };
}
