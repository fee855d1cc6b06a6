import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { weightTypes, type WeightType } from "@octavo/kernels";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { isGrouped } from "@octavo/artifacts/testing/dequantize";
import { randomMatrix } from "../testing/random-matrix.js";
import { readRows } from "@octavo/artifacts/testing/read-rows";

const gpu = await openTestGpu();
const shape = { rows: 3, cols: 512 };

/** Types that a GPU keeps as f16. */
const rounded: ReadonlySet<WeightType> = new Set(["f8_e4m3", "uint8", "table4", "iq4_nl", "iq4_xs", "mxfp4"]);

/** Every storage type, by rows that a GPU looks up, against the plain reading of the same bytes. */
describe("weights on the WebGPU backend", { skip: typeof gpu === "string" && gpu }, () => {
  if (typeof gpu === "string") return;
  for (const type of Object.keys(weightTypes) as WeightType[]) {
    for (const change of isGrouped(type) ? (["plain", "other scales"] as const) : (["plain"] as const)) {
      test(`${type}, ${change}`, async () => {
        using backend = createWebGpuBackend(gpu);
        const { source, expected } = randomMatrix(type, change === "other scales", shape);
        const found = await readRows(backend, source);
        const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        const tolerance = rounded.has(type) || source.columnOrder !== undefined ? 6e-4 : 3e-7;
        assert.equal(found.length, expected.length);
        for (const [i, value] of expected.entries()) {
          const gap = Math.abs((found[i] ?? Number.NaN) - value);
          assert.ok(gap <= tolerance * largest, `${i}: ${found[i]} instead of ${value}`);
        }
      });
    }
  }
});
