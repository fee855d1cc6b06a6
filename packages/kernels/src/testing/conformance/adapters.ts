import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Adapter, AdapterSite, Backend, Matrix, Program, StepPlan, WeightType } from "../../backend.js";
import { toBf16Bits } from "../half-floats.js";
import { assertClose, assertSameBits, floatBytes, matrix, promptPlan, smallestCache } from "../op-harness.js";
import { SeededRandom } from "../seeded-random.js";

const width = 64;
const inner = 48;
const numRows = 40;

/** What adapters add, to whom, and that it changes nobody else's bits. */
export function adapterConformance(open: (numThreads: number) => Backend): void {
  describe("adapters", () => {
    for (const weights of ["f32", "bf16", "int8"] as const) {
      test(`each row gets its own adapter's additions, ${weights} weights`, async () => {
        using backend = open(2);
        const model = await TinyMlp.create(backend, weights);
        const plain = await model.run([]);
        const { wide, narrow } = model.adapters;
        const choice = Array.from({ length: numRows }, (_, row) => [undefined, wide, narrow][row % 3]);
        const mixed = await model.run(choice);
        const [alone, other] = [
          await model.run(choice.map(() => wide)),
          await model.run(choice.map(() => narrow)),
        ];
        for (let row = 0; row < numRows; row++) {
          const expected = [plain, alone, other][row % 3]?.[row];
          assertSameBits(mixed[row], expected, `row ${row} beside rows of other adapters`);
          assert.ok(row % 3 === 0 || mixed[row]?.some((value, i) => value !== plain[row]?.[i]), `row ${row}`);
        }
        using single = open(1);
        const again = await TinyMlp.create(single, weights);
        for (const row of [0, 1, 2, 31]) {
          const adapter =
            row % 3 === 0 ? undefined : row % 3 === 1 ? again.adapters.wide : again.adapters.narrow;
          const [lone] = await again.run([adapter], [row]);
          assertSameBits(lone, mixed[row], `row ${row} alone`);
        }
      });
    }

    test("what is added is scale * up * down * x", async () => {
      using backend = open(2);
      const model = await TinyMlp.create(backend, "f32");
      const found = await model.run(Array.from({ length: numRows }, () => model.adapters.wide));
      for (const [row, values] of found.entries()) assertClose(values, model.expected(row), 2e-5);
    });

    test("a disposed adapter is refused, one in use survives", async () => {
      using backend = open(1);
      const model = await TinyMlp.create(backend, "f32");
      const { wide, narrow } = model.adapters;
      const before = await model.run([narrow]);
      const running = model.run([narrow]);
      narrow[Symbol.dispose]();
      assertSameBits((await running)[0], before[0], "a step under way");
      await assert.rejects(model.run([narrow]), { message: /adapter has been disposed/ });
      const stranger = await TinyMlp.create(backend, "f32");
      await assert.rejects(stranger.run([wide]), { code: "internal_error" });
    });

    test("shapes that do not fit are refused by name", async () => {
      using backend = open(1);
      const model = await TinyMlp.create(backend, "f32");
      const down = await matrix(backend, 2, width, new Float32Array(2 * width));
      const up = await matrix(backend, inner, 2, new Float32Array(2 * inner));
      const make = (site: number, parts: AdapterSite["parts"], use = down): Adapter => {
        return createAdapter(backend, model.program, [{ site, down: use, parts }]);
      };
      const part = { column: 0, up, scale: 1 };
      assert.throws(() => make(7, [part]), {
        code: "artifact_invalid",
        message: /site 7: the program has no/,
      });
      assert.throws(() => make(0, [part], up), { message: /takes 2 columns, the linear has 64/ });
      assert.throws(() => make(0, [part, { ...part, column: inner }]), { message: /ranks .* add up to 4/ });
      assert.throws(() => make(0, [{ ...part, column: inner + 1 }]), { message: /outputs 49 to 97 of 96/ });
      assert.throws(() => make(0, [{ ...part, scale: 1e60 }]), { message: /scale 1e\+60/ });
      make(0, [part])[Symbol.dispose]();
    });
  });
}

/** down(silu(gate(x)) * up(x)) over rows that are the embedding's; site 0 is gate and up, site 1 is down. */
class TinyMlp {
  readonly program: Program;
  readonly adapters: { readonly wide: Adapter; readonly narrow: Adapter };
  readonly #backend: Backend;
  readonly #values: ReadonlyMap<string, Float32Array>;

  private constructor(
    backend: Backend,
    program: Program,
    adapters: TinyMlp["adapters"],
    values: ReadonlyMap<string, Float32Array>,
  ) {
    this.#backend = backend;
    this.program = program;
    this.adapters = adapters;
    this.#values = values;
  }

  static async create(backend: Backend, weights: WeightType): Promise<TinyMlp> {
    const random = new SeededRandom(17);
    const values = new Map<string, Float32Array>();
    const draw = (name: string, rows: number, cols: number, scale = 0.2): Float32Array => {
      const drawn = random.floats(rows * cols, scale);
      values.set(name, drawn);
      return drawn;
    };
    const program = backend.compile({
      buffers: [width, 2 * inner, inner, width, width],
      ops: [
        {
          op: "embedding",
          weight: await matrix(backend, numRows, width, draw("x", numRows, width, 1)),
          out: { buffer: 0 },
        },
        {
          op: "linear",
          in: { buffer: 0 },
          weight: await stored(backend, weights, 2 * inner, width, draw("gateUp", 2 * inner, width)),
          out: { buffer: 1 },
          site: 0,
        },
        { op: "gated_activation", in: { buffer: 1 }, out: { buffer: 2 }, activation: "silu" },
        {
          op: "linear",
          in: { buffer: 2 },
          weight: await matrix(backend, width, inner, draw("down", width, inner)),
          out: { buffer: 3 },
          site: 1,
        },
        { op: "gather", in: { buffer: 3 }, out: { buffer: 4 } },
      ],
      hidden: { buffer: 4 },
      head: { weight: await matrix(backend, 1, width, new Float32Array(width)) },
      maxTokens: numRows,
    });
    const add = async (name: string, rows: number, cols: number): Promise<Matrix> =>
      matrix(backend, rows, cols, draw(name, rows, cols));
    const wide = createAdapter(backend, program, [
      {
        site: 0,
        down: await add("A0", 5, width),
        parts: [
          { column: inner, up: await add("Bup", inner, 3), scale: 0.5 },
          { column: 0, up: await add("Bgate", inner, 2), scale: 2 },
        ],
      },
      {
        site: 1,
        down: await add("A1", 4, inner),
        parts: [{ column: 0, up: await add("Bdown", width, 4), scale: 1 }],
      },
    ]);
    const narrow = createAdapter(backend, program, [
      {
        site: 1,
        down: await add("A2", 1, inner),
        parts: [{ column: 0, up: await add("B2", width, 1), scale: 1.5 }],
      },
    ]);
    return new TinyMlp(backend, program, { wide, narrow }, values);
  }

  /** Row i of the embedding, or those of `rows`, each a sequence of its own under `choice[i]`. */
  async run(choice: readonly (Adapter | undefined)[], rows?: readonly number[]): Promise<Float32Array[]> {
    using cache = this.#backend.createKvCache({ ...smallestCache, numBlocks: numRows });
    const tokens = rows ?? Array.from({ length: choice.length === 0 ? numRows : choice.length }, (_, i) => i);
    const count = tokens.length;
    const indices = Int32Array.from({ length: count + 1 }, (_, i) => i);
    const plan: StepPlan = {
      ...promptPlan(
        tokens,
        tokens.map(() => ({ kind: "hidden" })),
      ),
      numSequences: count,
      positions: new Int32Array(count),
      slots: indices.map((i) => 16 * i),
      queryStarts: indices,
      contextLengths: new Int32Array(count).fill(1),
      blockTables: indices,
      blockTableStarts: indices,
      ...(choice.length > 0 && { adapters: choice }),
    };
    const result = await this.#backend.execute(this.program, cache, plan);
    return result.rows.map((row) => row.hidden ?? assert.fail("a hidden row without its state"));
  }

  /** What `wide` gives a row, in double precision. */
  expected(row: number): Float64Array {
    const x = Float64Array.from(this.#of("x").subarray(row * width, (row + 1) * width));
    const low = this.#times("A0", x);
    const both = this.#times("gateUp", x);
    this.#times("Bup", low.subarray(0, 3)).forEach((value, i) => (both[inner + i]! += 0.5 * value));
    this.#times("Bgate", low.subarray(3, 5)).forEach((value, i) => (both[i]! += 2 * value));
    const gated = both
      .subarray(0, inner)
      .map((gate, i) => (gate / (1 + Math.exp(-gate))) * (both[inner + i] ?? 0));
    const added = this.#times("Bdown", this.#times("A1", gated));
    return this.#times("down", gated).map((value, i) => value + (added[i] ?? 0));
  }

  #of(name: string): Float32Array {
    return this.#values.get(name) ?? assert.fail(name);
  }

  #times(name: string, x: Float64Array): Float64Array {
    const values = this.#of(name);
    return Float64Array.from({ length: values.length / x.length }, (_, row) =>
      x.reduce((sum, value, i) => sum + value * (values[row * x.length + i] ?? 0), 0),
    );
  }
}

function createAdapter(backend: Backend, program: Program, sites: readonly AdapterSite[]): Adapter {
  return backend.createAdapter?.(program, sites) ?? assert.fail("this backend has no adapters");
}

function stored(
  backend: Backend,
  type: WeightType,
  rows: number,
  cols: number,
  values: Float32Array,
): Promise<Matrix> {
  const shape = { type, rows, cols, name: "test.matrix" };
  if (type === "f32") return matrix(backend, rows, cols, values);
  if (type === "bf16") {
    const data = new Uint8Array(Uint16Array.from(values, toBf16Bits).buffer);
    return backend.createMatrix([{ ...shape, bytes: { data } }]);
  }
  const groupSize = 32;
  const scales = new Float32Array((rows * cols) / groupSize).fill(0.01);
  const data = new Uint8Array(
    Int8Array.from(values, (value) => Math.max(-127, Math.min(127, value * 100))).buffer,
  );
  return backend.createMatrix([{ ...shape, bytes: { data }, scales: floatBytes(scales), groupSize }]);
}
