import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, RopeSpec } from "../../backend.js";
import { assertClose, runOps } from "../op-harness.js";
import { rope } from "../reference-ops.js";
import { SeededRandom } from "../seeded-random.js";

/** Rotations of heads, and what grows with the position beside them. */
export function ropeConformance(open: () => Backend): void {
  describe("rope", () => {
    const layouts: readonly (RopeSpec & { readonly name: string; readonly headDim: number })[] = [
      { name: "neox", layout: "neox", headDim: 64, attentionFactor: 1, inverseFrequencies: frequencies(64) },
      {
        name: "interleaved",
        layout: "interleaved",
        headDim: 64,
        attentionFactor: 1,
        inverseFrequencies: frequencies(64),
      },
      {
        name: "neox, partial, with a factor",
        layout: "neox",
        headDim: 80,
        attentionFactor: 1.3,
        inverseFrequencies: frequencies(20),
      },
      {
        name: "interleaved, partial",
        layout: "interleaved",
        headDim: 24,
        attentionFactor: 0.9,
        inverseFrequencies: frequencies(10),
      },
      {
        name: "neox, heads of 12",
        layout: "neox",
        headDim: 12,
        attentionFactor: 1,
        inverseFrequencies: frequencies(12),
      },
      {
        name: "interleaved, heads of 100",
        layout: "interleaved",
        headDim: 100,
        attentionFactor: 1,
        inverseFrequencies: frequencies(100),
      },
      {
        name: "nothing but growth",
        layout: "neox",
        headDim: 24,
        attentionFactor: 1,
        inverseFrequencies: new Float32Array(12),
        growth: { beta: 0.3, every: 78, offset: 1 },
      },
    ];
    for (const { name, headDim, ...spec } of layouts) {
      test(name, async () => {
        using backend = open();
        const random = new SeededRandom(3);
        const rows = Array.from({ length: 5 }, () => random.floats(3 * headDim));
        const positions = Int32Array.of(0, 1, 77, 4095, 131071);
        const out = await runOps(backend, rows, {
          ops: [{ op: "rope", on: { buffer: 0, column: headDim }, headDim, rope: spec }],
          result: 0,
          plan: (plan) => ({ ...plan, positions }),
        });
        for (const [i, row] of rows.entries()) {
          assert.deepEqual(
            out[i]?.subarray(0, headDim),
            row.subarray(0, headDim),
            "columns outside are left alone",
          );
          assertClose(
            out[i]?.subarray(headDim) ?? [],
            rope(row.subarray(headDim), headDim, positions[i] ?? 0, spec),
            1e-6,
          );
        }
      });
    }
  });
}

function frequencies(rotaryDim: number): Float32Array {
  return Float32Array.from({ length: rotaryDim / 2 }, (_, i) => 10000 ** ((-2 * i) / rotaryDim));
}
