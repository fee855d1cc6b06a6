import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, KvCache, Program, RecurrentOp, StepPlan } from "../../backend.js";
import { stateWidths } from "../../state-widths.js";
import { assertClose, assertSameBits, matrix, smallestCache, vector } from "../op-harness.js";
import { convolve, scan } from "../reference-recurrence.js";
import { SeededRandom } from "../seeded-random.js";

const numTokens = 70;
const maxDraftTokens = 5;
const numSlots = 6;

/** What a step does with a sequence whose tokens are rows of the table: computes those from `from` to `to`. */
interface Part {
  readonly from: number;
  readonly to: number;
  readonly slot: number;
  /** Default: the slot itself, or nothing at the start. */
  readonly source?: number;
  /** Default: `from`. */
  readonly start?: number;
  /** Default: `to`. */
  readonly end?: number;
  readonly snapshots?: readonly (readonly [position: number, slot: number])[];
}

/** A recurrent op that reads rows of random numbers and writes `outWidth` columns. */
interface Case {
  readonly name: string;
  readonly inWidth: number;
  readonly outWidth: number;
  makeOp(backend: Backend): RecurrentOp;
  reference(rows: readonly Float32Array[]): number[][];
}

class Harness {
  readonly rows: readonly Float32Array[];
  readonly #backend: Backend;
  readonly #program: Program;
  readonly #cache: KvCache;

  static async open(backend: Backend, subject: Case): Promise<Harness> {
    const random = new SeededRandom(5);
    const rows = Array.from({ length: numTokens }, () => random.floats(subject.inWidth));
    const { inWidth, outWidth } = subject;
    const buffers = [inWidth, outWidth, outWidth];
    const op = subject.makeOp(backend);
    const program = backend.compile({
      buffers,
      ops: [
        {
          op: "embedding",
          weight: await matrix(
            backend,
            numTokens,
            inWidth,
            rows.flatMap((row) => [...row]),
          ),
          out: { buffer: 0 },
        },
        op,
        { op: "gather", in: { buffer: 1 }, out: { buffer: 2 } },
      ],
      hidden: { buffer: 2 },
      head: { weight: await matrix(backend, 1, outWidth, new Float32Array(outWidth)) },
      maxTokens: 4 * numTokens,
    });
    const widths = stateWidths([op], buffers, maxDraftTokens);
    const cache = backend.createKvCache({ ...smallestCache, states: { numSlots, maxDraftTokens, widths } });
    return new Harness(backend, rows, program, cache);
  }

  private constructor(backend: Backend, rows: readonly Float32Array[], program: Program, cache: KvCache) {
    this.#backend = backend;
    this.rows = rows;
    this.#program = program;
    this.#cache = cache;
  }

  /** Outputs of all parts' tokens. */
  async run(...parts: readonly Part[]): Promise<Float32Array[]> {
    const plan = this.plan(parts);
    const result = await this.#backend.execute(this.#program, this.#cache, plan);
    return result.rows.map((row) => row.hidden ?? new Float32Array());
  }

  execute(plan: StepPlan): Promise<unknown> {
    return this.#backend.execute(this.#program, this.#cache, plan);
  }

  plan(parts: readonly Part[]): StepPlan {
    const tokens = parts.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i));
    const counts = [0];
    for (const { from, to } of parts) counts.push((counts.at(-1) ?? 0) + to - from);
    const snapshots = parts.map((part) => part.snapshots ?? []);
    const snapshotStarts = [0];
    for (const list of snapshots) snapshotStarts.push((snapshotStarts.at(-1) ?? 0) + list.length);
    const blocksEach = numTokens / 16 + 1;
    const tables = parts.map((_, index) =>
      Array.from({ length: Math.floor(blocksEach) }, (__, block) => index * Math.floor(blocksEach) + block),
    );
    return {
      numTokens: tokens.length,
      numSequences: parts.length,
      tokenIds: Int32Array.from(tokens),
      positions: Int32Array.from(tokens),
      slots: Int32Array.from(
        parts.flatMap(({ from, to }, index) =>
          Array.from({ length: to - from }, (_, i) => {
            const position = from + i;
            return (tables[index]?.[Math.floor(position / 16)] ?? 0) * 16 + (position % 16);
          }),
        ),
      ),
      queryStarts: Int32Array.from(counts),
      contextLengths: Int32Array.from(parts, ({ to }) => to),
      blockTables: Int32Array.from(tables.flat()),
      blockTableStarts: Int32Array.from([...tables, []], (_, index) => index * Math.floor(blocksEach)),
      outputTokens: Int32Array.from(tokens, (_, index) => index),
      outputs: tokens.map(() => ({ kind: "hidden" })),
      states: {
        slots: Int32Array.from(parts, ({ slot }) => slot),
        sources: Int32Array.from(parts, ({ slot, source, from }) => source ?? (from === 0 ? -1 : slot)),
        starts: Int32Array.from(parts, ({ from, start }) => start ?? from),
        ends: Int32Array.from(parts, ({ to, end }) => end ?? to),
        snapshotStarts: Int32Array.from(snapshotStarts),
        snapshotPositions: Int32Array.from(snapshots.flat(), ([position]) => position),
        snapshotSlots: Int32Array.from(snapshots.flat(), ([, slot]) => slot),
      },
    };
  }
}

function convolutionCase(width: number, taps: number, hasBias: boolean): Case {
  const random = new SeededRandom(width + taps);
  const weight = random.floats(width * taps);
  const bias = random.floats(width);
  const activation = hasBias ? {} : { activation: "silu" as const };
  return {
    name: `convolution of ${width} channels over ${taps} tokens`,
    inWidth: width,
    outWidth: width,
    makeOp: (backend) => ({
      op: "convolution",
      state: 0,
      in: { buffer: 0 },
      out: { buffer: 1 },
      weight: vector(backend, weight),
      ...(hasBias && { bias: vector(backend, bias) }),
      ...activation,
    }),
    reference: (rows) => convolve(rows, weight, { taps, ...(hasBias && { bias }), ...activation }),
  };
}

interface Heads {
  readonly numHeads: number;
  readonly numKeyHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
}

function scanCase(op: "gated_delta_rule" | "state_space", heads: Heads, keyHeads: "grouped" | "tiled"): Case {
  const { numHeads, numKeyHeads, keyDim, valueDim } = heads;
  const random = new SeededRandom(numHeads * keyDim + valueDim);
  const [rates, stepBias, skip] = [random.floats(numHeads), random.floats(numHeads), random.floats(numHeads)];
  const keys = numKeyHeads * keyDim;
  const values = numHeads * valueDim;
  const spans = [keys, keys, values, numHeads, numHeads].reduce<{ column: number; width: number }[]>(
    (known, width) => [...known, { column: known.reduce((sum, span) => sum + span.width, 0), width }],
    [],
  );
  const [query, key, value, step, strength] = spans.map((span) => ({ buffer: 0, ...span }));
  const rateForm = op === "state_space" ? "negative" : "log";
  // Rates of the negative form are negated where they are used.
  const decayRate = rateForm === "log" ? rates : rates.map((rate) => -Math.abs(rate));
  const bounds = { leastStep: 0.2, mostStep: 2 };
  return {
    name: `${op} of ${numHeads} heads of ${keyDim} by ${valueDim}, ${numKeyHeads} key heads ${keyHeads}`,
    inWidth: 2 * keys + values + 2 * numHeads,
    outWidth: values,
    makeOp: (backend) => {
      const common = {
        ...heads,
        state: 0,
        out: { buffer: 1 },
        rateForm,
        decayRate: vector(backend, decayRate),
        stepBias: vector(backend, stepBias),
      } as const;
      return op === "gated_delta_rule"
        ? { ...common, op, keyHeads, q: query!, k: key!, v: value!, decay: step!, strength: strength! }
        : {
            ...common,
            ...bounds,
            op,
            c: query!,
            b: key!,
            x: value!,
            step: step!,
            skip: vector(backend, skip),
          };
    },
    reference: (rows) => {
      const part = (row: Float32Array, span: { column: number; width: number } | undefined): Float32Array =>
        row.subarray(span?.column ?? 0, (span?.column ?? 0) + (span?.width ?? 0));
      return scan(
        { ...heads, op, rateForm, keyHeads, ...(op === "state_space" && bounds) },
        { decayRate, stepBias, ...(op === "state_space" && { skip }) },
        rows.map((row) => ({
          query: part(row, query),
          key: part(row, key),
          value: part(row, value),
          step: part(row, step),
          strength: part(row, strength),
        })),
      );
    },
  };
}

const cases: readonly Case[] = [
  convolutionCase(8, 2, true),
  convolutionCase(300, 4, false),
  scanCase("gated_delta_rule", { numHeads: 4, numKeyHeads: 2, keyDim: 16, valueDim: 24 }, "grouped"),
  scanCase("gated_delta_rule", { numHeads: 6, numKeyHeads: 2, keyDim: 128, valueDim: 128 }, "tiled"),
  scanCase("gated_delta_rule", { numHeads: 1, numKeyHeads: 1, keyDim: 4, valueDim: 1 }, "grouped"),
  scanCase("state_space", { numHeads: 4, numKeyHeads: 2, keyDim: 32, valueDim: 40 }, "grouped"),
];

/** Ops that keep state: their numbers, and the same bits however a sequence is cut, resumed, drafted or batched. */
export function recurrentConformance(open: (numThreads: number) => Backend): void {
  describe("recurrent ops", () => {
    for (const subject of cases) {
      test(subject.name, async () => {
        using backend = open(2);
        const harness = await Harness.open(backend, subject);
        const whole = await harness.run({ from: 0, to: numTokens, slot: 1 });
        for (const [t, row] of subject.reference(harness.rows).entries())
          assertClose(whole[t] ?? [], row, 3e-5);
        const compare = (rows: readonly Float32Array[], from: number, what: string): void => {
          for (const [i, row] of rows.entries())
            assertSameBits(row, whole[from + i], `${what}: token ${from + i}`);
        };
        using single = open(1);
        const alone = await Harness.open(single, subject);
        for (let at = 0; at < numTokens; at += 1)
          compare(await alone.run({ from: at, to: at + 1, slot: 0 }), at, "one by one, on one thread");

        const cut = await harness.run(
          {
            from: 0,
            to: 33,
            slot: 0,
            snapshots: [
              [2, 2],
              [32, 3],
            ],
          },
          { from: 0, to: 5, slot: 4 },
        );
        compare(cut.slice(0, 33), 0, "cut");
        compare(cut.slice(33), 0, "beside it");
        compare(await harness.run({ from: 33, to: numTokens, slot: 0 }), 33, "the rest");
        const resumed = await harness.run(
          { from: 32, to: 50, slot: 0, source: 3 },
          { from: 2, to: 9, slot: 4, source: 2, snapshots: [[9, 5]] },
          { from: 32, to: 40, slot: 1, source: 3 },
        );
        compare(resumed.slice(0, 18), 32, "from a snapshot");
        compare(resumed.slice(18, 25), 2, "from an early snapshot");
        compare(resumed.slice(25), 32, "from the same snapshot");
        compare(await harness.run({ from: 9, to: 12, slot: 2, source: 5 }), 9, "from a snapshot of its end");
      });

      test(`${subject.name}: drafts that are taken back`, async () => {
        using backend = open(2);
        const harness = await Harness.open(backend, subject);
        const whole = await harness.run({ from: 0, to: numTokens, slot: 1 });
        await harness.run({ from: 0, to: 10, slot: 0 });
        let done = 10;
        let start = 10;
        const random = new SeededRandom(8);
        while (done + maxDraftTokens + 1 <= numTokens) {
          const drafted = random.integer(0, maxDraftTokens);
          // A snapshot among the tokens that were accepted in the step before, or of the step's own.
          const rows = await harness.run({
            from: done,
            to: done + 1 + drafted,
            slot: 0,
            start,
            end: done + 1,
            snapshots:
              start < done
                ? [
                    [start + 1, 2],
                    [done + 1, 3],
                  ]
                : [[done + 1, 3]],
          });
          for (const [i, row] of rows.entries())
            assertSameBits(row, whole[done + i], `token ${done + i} after ${drafted} draft tokens`);
          const snapshot = start < done ? ([start + 1, 2] as const) : ([done + 1, 3] as const);
          const [again] = await harness.run({
            from: snapshot[0],
            to: snapshot[0] + 1,
            slot: 4,
            source: snapshot[1],
          });
          assertSameBits(again, whole[snapshot[0]], `token ${snapshot[0]} from a snapshot`);
          start = done + 1;
          done += 1 + random.integer(0, drafted);
        }
      });
    }

    test("plans with slots that do not exist, are written twice, or stand for other tokens are refused", async () => {
      using backend = open(1);
      const harness = await Harness.open(backend, cases[0]!);
      const refused = (parts: readonly Part[], message: RegExp): Promise<void> =>
        assert.rejects(async () => harness.execute(harness.plan(parts)), {
          code: "invalid_request",
          message,
        });
      const { states: _, ...without } = harness.plan([{ from: 0, to: 3, slot: 0 }]);
      await assert.rejects(async () => harness.execute(without), /states is missing/);
      await refused([{ from: 0, to: 3, slot: numSlots }], /slots 0 to 5/);
      await refused(
        [
          { from: 0, to: 3, slot: 1 },
          { from: 0, to: 2, slot: 1 },
        ],
        /writes already/,
      );
      await refused([{ from: 0, to: 3, slot: 1, snapshots: [[2, 1]] }], /writes already/);
      await refused([{ from: 0, to: 3, slot: 1, snapshots: [[4, 2]] }], /snapshotPositions\[0\] is 4/);
      await refused(
        [
          {
            from: 0,
            to: 3,
            slot: 1,
            snapshots: [
              [2, 2],
              [2, 3],
            ],
          },
        ],
        /snapshotPositions\[1\] is 2/,
      );
      await refused([{ from: 4, to: 5, slot: 1, source: -1 }], /sources\[0\] is -1/);
      await refused([{ from: 4, to: 5, slot: 1, source: 2, start: 3 }], /starts\[0\] is 3/);
      await refused([{ from: 4, to: 12, slot: 1, end: 5 }], /ends\[0\] is 5/);
      await refused(
        [
          { from: 4, to: 5, slot: 1, source: 2 },
          { from: 0, to: 3, slot: 2 },
        ],
        /which the step writes/,
      );
    });

    test("programs whose recurrent ops do not fit are refused", async () => {
      using backend = open(1);
      const head = { weight: await matrix(backend, 1, 8, new Float32Array(8)) };
      const table = await matrix(backend, 2, 8, new Float32Array(16));
      const compile = (op: RecurrentOp): Program =>
        backend.compile({
          buffers: [8, 8],
          ops: [
            { op: "embedding", weight: table, out: { buffer: 0 } },
            op,
            { op: "gather", in: { buffer: 1 }, out: { buffer: 1 } },
          ],
          hidden: { buffer: 1 },
          head,
          maxTokens: 4,
        });
      const convolution = (length: number, state = 0): RecurrentOp => ({
        op: "convolution",
        state,
        in: { buffer: 0 },
        out: { buffer: 1 },
        weight: vector(backend, new Float32Array(length)),
      });
      assert.throws(() => compile(convolution(20)), /20 weights for 8 channels/);
      assert.throws(() => compile(convolution(8)), /from 2 to 8/);
      assert.throws(() => compile(convolution(16, 1)), /its state is 1/);
      const small = scanCase(
        "gated_delta_rule",
        { numHeads: 1, numKeyHeads: 1, keyDim: 6, valueDim: 4 },
        "grouped",
      );
      assert.throws(() => compile(small.makeOp(backend)), /keyDim 6; it must be a multiple of 4/);
    });
  });
}
