import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createCpuBackend } from "@octavo/kernels";
import { ggmlLayouts } from "../gguf/types.js";
import { lowBitLayouts, type LowBitName } from "../gguf/low-bits/layouts.js";
import { unpackBlocks } from "../gguf/low-bits/unpack.js";
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";
import { loadedBytesOf } from "../checkpoint/tensor-storage.js";
import { fixtureGguf } from "./model-fixtures.js";
import { dequantize } from "./dequantize.js";
import type { StoredType } from "./quantize.js";
import { readRows } from "./read-rows.js";

interface Fixture {
  /** Hexadecimal. */
  readonly blocks: string;
  /** What the gguf package makes of them; tools/oracle/make-gguf-block-fixtures.py. */
  readonly values: readonly number[];
}

function readFixture(name: string): Fixture {
  const path = fileURLToPath(new URL(`../../fixtures/gguf/blocks/${name}.json`, import.meta.url));
  return JSON.parse(readFileSync(path, "utf8")) as Fixture;
}

const fixtures = ["Q4_1", "Q5_1", "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "MXFP4"];
const unpacked = Object.keys(lowBitLayouts) as LowBitName[];

function assertValues(found: Float32Array, { values }: Fixture): void {
  const largest = Math.max(...values.map(Math.abs));
  assert.equal(found.length, values.length);
  for (const [i, value] of values.entries()) {
    const gap = Math.abs((found[i] ?? NaN) - value);
    assert.ok(gap <= 2e-6 * largest, `${i}: ${found[i]} instead of ${value}`);
  }
}

describe("GGUF blocks", () => {
  for (const name of fixtures) {
    it(`${name} stand for the values that the gguf package gives, read plainly and by the kernels`, async () => {
      const fixture = readFixture(name);
      const layout = [...ggmlLayouts.values()].find((candidate) => candidate.name === name);
      assert.ok(layout);
      const { type, blockElements: cols } = layout;
      const data = Buffer.from(fixture.blocks, "hex");
      assertValues(dequantize(type as StoredType, data), fixture);
      using backend = createCpuBackend({ numThreads: 1 });
      const source = { type, rows: fixture.values.length / cols, cols, name, bytes: { data } };
      assertValues(await readRows(backend, source), fixture);
    });
  }
  for (const name of unpacked) {
    it(`${name} is unpacked to what the gguf package gives`, async () => {
      const fixture = readFixture(name);
      const layout = lowBitLayouts[name];
      const { values, scales, ...parts } = unpackBlocks(name, Buffer.from(fixture.blocks, "hex"));
      assert.ok(values instanceof Uint8Array && scales !== undefined);
      const toBytes = (floats: Float32Array): { data: Uint8Array } => ({
        data: new Uint8Array(floats.buffer),
      });
      const { zeros, groupSize, table } = parts;
      using backend = createCpuBackend({ numThreads: 1 });
      const found = await readRows(backend, {
        type: layout.type,
        rows: fixture.values.length / layout.blockElements,
        cols: layout.blockElements,
        name,
        bytes: { data: values },
        scales: toBytes(scales),
        ...(zeros !== undefined && { zeros: toBytes(zeros) }),
        ...(groupSize !== undefined && { groupSize }),
        ...(table !== undefined && { table }),
      });
      assertValues(found, fixture);
    });
  }

  it("that are unpacked count as what they take in memory, whole or by expert", async () => {
    const { tensors } = await openCheckpoint(fixtureGguf("qwen3moe-low-bits"));
    let numUnpacked = 0;
    for (const tensor of tensors.values()) {
      if (tensor.recipe === undefined) continue;
      const { values, scales, zeros } = await tensor.recipe.assemble();
      assert.ok(values instanceof Uint8Array && scales !== undefined);
      assert.equal(loadedBytesOf(tensor), values.byteLength + scales.byteLength + (zeros?.byteLength ?? 0));
      numUnpacked++;
    }
    assert.ok(numUnpacked > 20, `${numUnpacked} tensors`);
  });
});
