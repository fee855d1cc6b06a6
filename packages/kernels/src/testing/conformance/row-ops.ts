import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend } from "../../backend.js";
import { assertClose, matrix, runOps, smallestCache, promptPlan, vector } from "../op-harness.js";
import { activateGated, layerNorm, rmsNorm, roundE4m3 } from "../reference-ops.js";
import { SeededRandom } from "../seeded-random.js";

/** Ops that work on a row by itself. */
export function rowOpsConformance(open: () => Backend): void {
  describe("row ops", () => {
    for (const width of [8, 33, 64, 576, 2048]) {
      test(`rms_norm over ${width} columns`, async () => {
        using backend = open();
        const random = new SeededRandom(width);
        const rows = [random.floats(width), random.floats(width, 1e3), random.floats(width, 1e-3)];
        const weight = random.floats(width);
        const out = await runOps(backend, rows, {
          buffers: [width],
          ops: [
            {
              op: "rms_norm",
              in: { buffer: 0 },
              weight: vector(backend, weight),
              out: { buffer: 1 },
              eps: 1e-5,
            },
          ],
          result: 1,
        });
        for (const [i, row] of rows.entries())
          assertClose(out[i] ?? [], rmsNorm(row, weight, { eps: 1e-5 }), 2e-6);
      });
    }

    test("rms_norm adds into the residual stream first, and can offset its weight", async () => {
      using backend = open();
      const random = new SeededRandom(1);
      const rows = Array.from({ length: 4 }, () => random.floats(96));
      const weight = random.floats(48);
      const ops = [
        {
          op: "rms_norm",
          in: { buffer: 0, column: 0, width: 48 },
          weight: vector(backend, weight),
          out: { buffer: 1 },
          eps: 1e-6,
          residual: { buffer: 0, column: 48 },
          weightOffset: 1,
        },
      ] as const;
      const normed = await runOps(backend, rows, { buffers: [48], ops, result: 1 });
      const streams = await runOps(backend, rows, { buffers: [48], ops, result: 0 });
      for (const [i, row] of rows.entries()) {
        const sum = Array.from({ length: 48 }, (_, column) => (row[column] ?? 0) + (row[48 + column] ?? 0));
        assertClose(normed[i] ?? [], rmsNorm(sum, weight, { eps: 1e-6, weightOffset: 1 }), 2e-6);
        assertClose(streams[i]?.subarray(48) ?? [], sum, 1e-7);
        assert.deepEqual(streams[i]?.subarray(0, 48), row.subarray(0, 48), "the input is left alone");
      }
    });

    for (const width of [9, 64, 771]) {
      test(`layer_norm over ${width} columns, of rows far from zero too`, async () => {
        using backend = open();
        const random = new SeededRandom(width);
        const rows = [
          random.floats(width),
          random.floats(width).map((x) => 100 + x),
          random.floats(width, 1e-3),
        ];
        const [weight, bias] = [random.floats(width), random.floats(width)];
        const base = { op: "layer_norm", in: { buffer: 0 }, out: { buffer: 1 }, eps: 1e-5 } as const;
        const handles = { weight: vector(backend, weight), bias: vector(backend, bias) };
        const biased = await runOps(backend, rows, {
          buffers: [width],
          ops: [{ ...base, ...handles }],
          result: 1,
        });
        const { weight: alone } = handles;
        const plain = await runOps(backend, rows, {
          buffers: [width],
          ops: [{ ...base, weight: alone }],
          result: 1,
        });
        for (const [i, row] of rows.entries()) {
          assertClose(biased[i] ?? [], layerNorm(row, weight, { eps: 1e-5, bias }), 1e-5);
          assertClose(plain[i] ?? [], layerNorm(row, weight, { eps: 1e-5 }), 1e-5);
        }
      });
    }

    test("layer_norm adds into the residual stream first", async () => {
      using backend = open();
      const random = new SeededRandom(5);
      const rows = Array.from({ length: 3 }, () => random.floats(80));
      const weight = random.floats(40);
      const residual = { buffer: 0, column: 40 };
      const ops = [
        {
          op: "layer_norm",
          in: { buffer: 0, column: 0, width: 40 },
          weight: vector(backend, weight),
          out: { buffer: 1 },
          eps: 1e-5,
          residual,
        },
      ] as const;
      const normed = await runOps(backend, rows, { buffers: [40], ops, result: 1 });
      for (const [i, row] of rows.entries()) {
        const sum = Array.from({ length: 40 }, (_, column) => (row[column] ?? 0) + (row[40 + column] ?? 0));
        assertClose(normed[i] ?? [], layerNorm(sum, weight, { eps: 1e-5 }), 2e-6);
      }
    });

    test("clamp bounds values from both sides", async () => {
      using backend = open();
      const row = Float32Array.of(-9, -2.5, -2, 0, 1.5, 2, 7, 3e38, 2.5);
      const on = { buffer: 0, column: 0, width: 8 };
      const out = await runOps(backend, [row], { ops: [{ op: "clamp", on, limit: 2 }], result: 0 });
      assert.deepEqual([...(out[0] ?? [])], [-2, -2, -2, 0, 1.5, 2, 2, 2, 2.5]);
      const uneven = { op: "clamp", on, limit: 1.5, least: -2.5 } as const;
      const [bounded = []] = await runOps(backend, [row], { ops: [uneven], result: 0 });
      assert.deepEqual([...bounded], [-2.5, -2.5, -2, 0, 1.5, 1.5, 1.5, 1.5, 2.5]);
    });

    test("round_e4m3 gives the nearest code times a scale of each row or group", async () => {
      using backend = open();
      // Ties go to even codes: 12.5 lies between 12 and 13, 17 between 16 and 18; below 2^-6 codes are 2^-9 apart.
      const row = Float32Array.of(448, 12.5, 17, -19, 2 ** -10, 3 * 2 ** -10, -0.9, 0);
      const base = { op: "round_e4m3", in: { buffer: 0 }, out: { buffer: 1 } } as const;
      const of = async (values: Float32Array, groupSize?: number): Promise<number[]> => {
        const ops = [{ ...base, ...(groupSize !== undefined && { groupSize }) }];
        return [
          ...((await runOps(backend, [values], { buffers: [values.length], ops, result: 1 }))[0] ?? []),
        ];
      };
      assert.deepEqual(await of(row), [448, 12, 16, -20, 0, 2 ** -8, -0.875, 0]);
      assert.deepEqual(await of(new Float32Array(5)), [0, 0, 0, 0, 0]);
      const random = new SeededRandom(8).floats(80, 3);
      assertClose(await of(random), roundE4m3(random, 80), 1e-6);
      assertClose(await of(random, 32), roundE4m3(random, 32), 1e-6);
    });

    test("an activation without a gate", async () => {
      using backend = open();
      const row = new SeededRandom(3).floats(1300, 4);
      for (const activation of ["silu", "gelu", "gelu_tanh", "tanh", "relu"] as const) {
        const ops = [{ op: "activation", on: { buffer: 0 }, activation }] as const;
        const out = await runOps(backend, [row], { ops, result: 0 });
        assertClose(
          out[0] ?? [],
          Array.from(row, (x) => activateGated(activation, x, 1)),
          2e-6,
        );
      }
    });

    for (const numWeights of [24, 72]) {
      test(`rms_norm of each head with ${numWeights} weights, in place and on a column range`, async () => {
        using backend = open();
        const random = new SeededRandom(2);
        const rows = Array.from({ length: 3 }, () => random.floats(100));
        const weight = random.floats(numWeights);
        const on = { buffer: 0, column: 4, width: 72 };
        const out = await runOps(backend, rows, {
          ops: [
            { op: "rms_norm", in: on, weight: vector(backend, weight), out: on, eps: 1e-5, groupSize: 24 },
          ],
          result: 0,
        });
        for (const [i, row] of rows.entries()) {
          assertClose(
            out[i]?.subarray(4, 76) ?? [],
            rmsNorm(row.subarray(4, 76), weight, { eps: 1e-5, groupSize: 24 }),
            2e-6,
          );
          assert.deepEqual(out[i]?.subarray(0, 4), row.subarray(0, 4));
          assert.deepEqual(out[i]?.subarray(76), row.subarray(76));
        }
      });
    }

    for (const activation of ["silu", "gelu", "gelu_tanh", "clamped_swiglu"] as const) {
      test(`gated_activation: ${activation}`, async () => {
        using backend = open();
        const extremes = [-200, -90, -20, -8, -5, -3, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1, 3, 5, 8, 20, 90, 200];
        const gate = [...extremes, ...new SeededRandom(4).floats(1100, 3)];
        const up = new SeededRandom(5).floats(gate.length, 5);
        const [out] = await runOps(backend, [[...gate, ...up]], {
          buffers: [gate.length],
          ops: [{ op: "gated_activation", in: { buffer: 0 }, out: { buffer: 1 }, activation }],
          result: 1,
        });
        for (const [i, x] of gate.entries()) {
          const expected = activateGated(activation, Math.fround(x), up[i] ?? 0);
          const gap = Math.abs((out?.[i] ?? Number.NaN) - expected);
          assert.ok(
            gap <= 1e-6 * Math.max(1, Math.abs(x), Math.abs(expected)),
            `${activation}(${x}) * ${up[i]} is ${out?.[i]}, not ${expected}`,
          );
        }
      });
    }

    test("gate multiplies by an activation, split takes runs in turn", async () => {
      using backend = open();
      const rows = Array.from({ length: 3 }, (_, i) => new SeededRandom(i).floats(60, 4));
      for (const activation of ["silu", "sigmoid", "identity"] as const) {
        const [gate, on] = [{ buffer: 1 }, { buffer: 2 }];
        const out = await runOps(backend, rows, {
          buffers: [30, 30],
          ops: [
            { op: "split", in: { buffer: 0 }, first: gate, second: on, run: 5 },
            { op: "gate", in: gate, on, activation },
          ],
          result: 2,
        });
        for (const [index, row] of rows.entries()) {
          const run = (half: number): number[] => [...row].filter((_, i) => Math.floor(i / 5) % 2 === half);
          const expected = run(1).map((value, i) => activateGated(activation, run(0)[i] ?? 0, value));
          assertClose(out[index] ?? [], expected, 1e-6);
        }
      }
    });

    test("add, scale and a scaled embedding", async () => {
      using backend = open();
      const rows = Array.from({ length: 3 }, (_, i) => new SeededRandom(i).floats(37));
      const table = await matrix(
        backend,
        3,
        37,
        rows.flatMap((row) => [...row]),
      );
      const out = await runOps(backend, rows, {
        buffers: [37],
        ops: [
          { op: "embedding", weight: table, out: { buffer: 1 }, scale: 0.5 },
          { op: "add", in: { buffer: 0 }, out: { buffer: 1 } },
          { op: "scale", on: { buffer: 1 }, factor: -4, by: vector(backend, [0.5]) },
        ],
        result: 1,
      });
      for (const [i, row] of rows.entries())
        assertClose(
          out[i] ?? [],
          row.map((value) => value * -3),
          1e-6,
        );
    });

    test("linear with a bias", async () => {
      using backend = open();
      const random = new SeededRandom(6);
      const rows = Array.from({ length: 5 }, () => random.floats(64));
      const weight = random.floats(50 * 64);
      const bias = random.floats(50);
      const out = await runOps(backend, rows, {
        buffers: [50],
        ops: [
          {
            op: "linear",
            in: { buffer: 0 },
            weight: await matrix(backend, 50, 64, weight),
            bias: vector(backend, bias),
            out: { buffer: 1 },
          },
        ],
        result: 1,
      });
      for (const [i, row] of rows.entries()) {
        const expected = Array.from(bias, (value, r) =>
          row.reduce((sum, x, c) => sum + x * (weight[r * 64 + c] ?? 0), value),
        );
        assertClose(out[i] ?? [], expected, 1e-6);
      }
    });

    test("gather keeps the named rows, in place and repeated, and later ops run on those alone", async () => {
      using backend = open();
      const rows = Array.from({ length: 6 }, (_, i) => [i, 10 * i, 100 * i, 1]);
      const table = await matrix(backend, 6, 4, rows.flat());
      using program = backend.compile({
        buffers: [4],
        ops: [
          { op: "embedding", weight: table, out: { buffer: 0 } },
          { op: "gather", in: { buffer: 0 }, out: { buffer: 0 } },
          { op: "scale", on: { buffer: 0 }, factor: 2 },
        ],
        hidden: { buffer: 0 },
        head: { weight: table },
        maxTokens: 6,
      });
      const outputTokens = [0, 0, 0, 1, 5, 5];
      const plan = promptPlan(
        [0, 1, 2, 3, 4, 5],
        outputTokens.map(() => ({ kind: "hidden" })),
      );
      const cache = backend.createKvCache(smallestCache);
      const { rows: found } = await backend.execute(program, cache, {
        ...plan,
        outputTokens: Int32Array.from(outputTokens),
      });
      for (const [i, token] of outputTokens.entries()) {
        assert.deepEqual(
          [...(found[i]?.hidden ?? [])],
          rows[token]?.map((value) => 2 * value),
        );
      }
    });

    test("a program without gather finds output rows among the tokens", async () => {
      using backend = open();
      const rows = Array.from({ length: 5 }, (_, i) => [i, -i]);
      const table = await matrix(backend, 5, 2, rows.flat());
      using program = backend.compile({
        buffers: [2],
        ops: [{ op: "embedding", weight: table, out: { buffer: 0 } }],
        hidden: { buffer: 0 },
        head: { weight: table },
        maxTokens: 5,
      });
      using cache = backend.createKvCache(smallestCache);
      const outputs = [{ kind: "hidden" }, { kind: "score", target: 4, numLogprobs: 0 }] as const;
      const plan = {
        ...promptPlan([0, 1, 2, 3, 4], outputs),
        outputTokens: Int32Array.of(2, 3),
        wantLogits: true,
      };
      const result = await backend.execute(program, cache, plan);
      assert.deepEqual([...(result.rows[0]?.hidden ?? [])], rows[2]);
      assert.deepEqual([...(result.rows[1]?.logits ?? [])], [0, 6, 12, 18, 24]);
    });
  });
}
