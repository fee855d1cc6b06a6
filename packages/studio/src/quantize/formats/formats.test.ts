import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fromHalf, toHalf } from "@octavo/artifacts/testing/float-bits";
import { writeTinyFolder } from "@octavo/artifacts/testing/tiny-checkpoint";
import type { QuantizeOptions } from "../options.js";
import { quantize } from "../quantize.js";
import { artifactValues } from "../testing/artifact-values.js";
import { e4m3Values } from "@octavo/artifacts/program/float-conversion";
import { toE4m3 } from "./fp8.js";
import { dynamicMap } from "./nf4.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-formats-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const tiny = join(scratch, "tiny");
// A matrix is as wide as two groups at least.
writeTinyFolder(tiny, {
  architecture: "Qwen3ForCausalLM",
  hiddenSize: 128,
  intermediateSize: 192,
  numLayers: 1,
  type: "bf16",
});
const original = await artifactValues(tiny);
let counter = 0;

async function made(options: Omit<QuantizeOptions, "out">): Promise<ReadonlyMap<string, Float32Array>> {
  const out = join(scratch, `out-${counter++}`);
  await quantize(tiny, { ...options, out });
  return artifactValues(out);
}

const quantised = /_proj\.weight$/;

/** Holds each matrix against a plain statement of its format, a group of values at a time. */
function assertGroups(
  found: ReadonlyMap<string, Float32Array>,
  groupOf: (name: string) => number,
  expected: (group: Float32Array) => number[],
): void {
  for (const [name, values] of original) {
    const others = found.get(name);
    assert.ok(others, name);
    if (!quantised.test(name)) {
      assert.deepEqual(others, values, name);
      continue;
    }
    const size = groupOf(name);
    for (let start = 0; start < values.length; start += size) {
      const wanted = expected(values.subarray(start, start + size));
      for (const [i, value] of wanted.entries()) {
        const gap = Math.abs(value - others[start + i]!);
        assert.ok(
          gap <= 1e-6 * Math.abs(value) + 1e-9,
          `${name}[${start + i}]: ${others[start + i]} for ${value}`,
        );
      }
    }
  }
}

const inputsOf = (name: string): number =>
  name.includes("down_proj") ? 192 : name.includes("o_proj") ? 64 : 128;
const extremeOf = (values: Float32Array): number => Math.max(...values.map(Math.abs));

function nearestOf(table: readonly number[], value: number): number {
  return table.reduce((best, entry) => (Math.abs(entry - value) < Math.abs(best - value) ? entry : best));
}

describe("what is written is what the format defines, read back by the engine", () => {
  test("fp8: each row's largest value is E4M3's largest", async () => {
    // Between two equally near codes the even one wins: it comes first.
    const codes = [...e4m3Values.keys()].toSorted((a, b) => (a & 1) - (b & 1));
    const table = codes.map((code) => e4m3Values[code]!).filter((value) => !Number.isNaN(value));
    assertGroups(await made({ method: "fp8" }), inputsOf, (row) => {
      const scale = Math.fround(extremeOf(row) / 448);
      return Array.from(row, (value) => nearestOf(table, value / scale) * scale);
    });
  });

  test("int8: a scale per row", async () => {
    assertGroups(await made({ method: "int8" }), inputsOf, (row) => {
      const scale = Math.fround(extremeOf(row) / 127);
      return Array.from(
        row,
        (value) =>
          nearestOf(
            Array.from({ length: 255 }, (_, i) => i - 127),
            value / scale,
          ) * scale,
      );
    });
  });

  const nf4 = [
    -1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803, 0.1609302,
    0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
  ];
  test("nf4: blocks of 64 over the rows laid end to end", async () => {
    assertGroups(
      await made({ method: "nf4" }),
      () => 64,
      (block) => {
        const extreme = extremeOf(block);
        return Array.from(block, (value) => Math.fround(nearestOf(nf4, value / extreme)) * extreme);
      },
    );
  });

  test("nf4 with nested statistics stays within their rounding", async () => {
    const found = await made({ method: "nf4", doubleQuant: true });
    const single = await made({ method: "nf4" });
    for (const [name, values] of single) {
      const others = found.get(name)!;
      const largest = extremeOf(values);
      for (const [i, value] of values.entries())
        assert.ok(Math.abs(value - others[i]!) <= 0.02 * largest, `${name}[${i}]`);
    }
  });

  const half = (value: number): number => fromHalf(toHalf(value));
  test("awq, rounded: asymmetric groups whose scale is a half", async () => {
    assertGroups(
      await made({ method: "awq", groupSize: 32, roundToNearest: true }),
      () => 32,
      (group) => {
        const low = Math.min(0, ...group);
        const scale = half((Math.max(0, ...group) - low) / 15);
        const zero = Math.round(-low / scale);
        return Array.from(group, (value) => {
          const code = Math.min(15, Math.max(0, Math.round(value / scale) + zero));
          return (code - zero) * scale;
        });
      },
    );
  });

  for (const bits of [2, 3, 4, 8] as const) {
    test(`gptq of ${bits} bits, rounded: symmetric groups`, async () => {
      const most = 2 ** bits - 1;
      assertGroups(
        await made({ method: "gptq", bits, groupSize: 64, roundToNearest: true }),
        () => 64,
        (group) => {
          const scale = half((2 * extremeOf(group)) / most);
          const middle = 2 ** (bits - 1);
          return Array.from(
            group,
            (value) => (Math.min(most, Math.max(0, Math.round(value / scale) + middle)) - middle) * scale,
          );
        },
      );
    });
  }
});

test("E4M3 codes are the nearest, also around powers of two, subnormals and the end", () => {
  const codes = [...e4m3Values.keys()].filter((code) => !Number.isNaN(e4m3Values[code]));
  for (const code of codes) if (code !== 0x80) assert.equal(toE4m3(e4m3Values[code]!), code);
  for (const value of [0.0009, 0.0157, 0.124, 0.1251, 1.06, 1.07, 15.4, 15.6, 447, 1e9, -3.3]) {
    const chosen = e4m3Values[toE4m3(value)]!;
    const bounded = Math.max(-448, Math.min(448, value));
    assert.ok(
      codes.every((code) => Math.abs(chosen - bounded) <= Math.abs(e4m3Values[code]! - bounded)),
      String(value),
    );
  }
});

test("the map of nested statistics is the one bitsandbytes writes", () => {
  const map = dynamicMap();
  assert.equal(map.length, 256);
  assert.ok(Math.abs(map[0]! - -0.99296874) < 1e-7);
  assert.ok(Math.abs(map[126]! - -5.5e-7) < 1e-12);
  assert.equal(map[127], 0);
  assert.equal(map[255], 1);
});
