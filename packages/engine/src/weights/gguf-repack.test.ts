import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createCpuBackend } from "@octavo/kernels";
import { dequantizeGroups, isGrouped } from "../testing/dequantize.js";
import { ggufRepackings, repackBlocks } from "./gguf-repack.js";

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

describe("GGUF blocks as codes and scales", () => {
  for (const [name, repacking] of ggufRepackings.values()) {
    it(`${name} stands for the values that the gguf package gives`, () => {
      const fixture = readFixture(name);
      const numElements = fixture.values.length;
      const { values, scales, zeros, ...rest } = repackBlocks(
        repacking,
        Buffer.from(fixture.blocks, "hex"),
        numElements,
      );
      assert.ok(isGrouped(repacking.type) && values instanceof Uint8Array);
      const shape = { type: repacking.type, rows: 1, cols: numElements, ...rest };
      const found = dequantizeGroups(shape, values, { scales, zeros });
      const largest = Math.max(...fixture.values.map(Math.abs));
      for (const [i, value] of fixture.values.entries()) {
        assert.ok(
          Math.abs((found[i] ?? NaN) - value) <= 2e-6 * largest,
          `${i}: ${found[i]} instead of ${value}`,
        );
      }
    });

    it(`${name} is packed by the native kernels`, async () => {
      const fixture = readFixture(name);
      const cols = repacking.blockElements;
      const rows = fixture.values.length / cols;
      const parts = repackBlocks(repacking, Buffer.from(fixture.blocks, "hex"), rows * cols);
      assert.ok(parts.values instanceof Uint8Array);
      using backend = createCpuBackend({ numThreads: 1 });
      const floats = (values: Float32Array): { data: Uint8Array } => ({
        data: new Uint8Array(values.buffer),
      });
      using matrix = await backend.createMatrix([
        {
          type: repacking.type,
          rows,
          cols,
          name,
          bytes: { data: parts.values },
          scales: floats(parts.scales),
          groupSize: parts.groupSize,
          ...(parts.zeros !== undefined && { zeros: floats(parts.zeros) }),
          ...(parts.table !== undefined && { table: parts.table }),
        },
      ]);
      assert.deepEqual([matrix.rows, matrix.cols], [rows, cols]);
    });
  }
});
