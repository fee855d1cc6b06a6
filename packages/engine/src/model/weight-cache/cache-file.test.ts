import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { chunksOf, readCacheIndex, writeCacheFile } from "./cache-file.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-cache-file-"));
after(() => rmSync(folder, { recursive: true }));

const MiB = 2 ** 20;

/** Bytes that differ from place to place and from matrix to matrix. */
function bytesOf(byteLength: number, seed: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(byteLength / 4));
  for (let at = 0; at < words.length; at++) words[at] = Math.imul(at + 1, 0x9e3779b1) ^ seed;
  return new Uint8Array(words.buffer, 0, byteLength);
}

describe("a file of packed matrices", () => {
  test("is written in whole chunks, wherever matrices end", () => {
    for (const lengths of [[3, 10, 0, 1, 25], [8, 8], [7, 1, 8, 9], [1], []]) {
      const parts = lengths.map((length, seed) => bytesOf(length, seed));
      const chunks = [...chunksOf(parts, 8)].map((pieces) => Buffer.concat(pieces));
      assert.deepEqual(Buffer.concat(chunks), Buffer.concat(parts));
      assert.ok(chunks.slice(0, -1).every(({ length }) => length === 8));
      assert.ok(chunks.every(({ length }) => length > 0 && length <= 8));
    }
  });

  for (const [what, lengths] of [
    ["smaller than what is written at a time", [1, 4096, 4097, 70_000]],
    ["of many times that, and its seams within small ones", [20 * MiB + 5, 3, 8 * MiB, 1, 4 * MiB - 4096, 9]],
    ["that ends with a whole piece", [8 * MiB - 4096]],
  ] as const) {
    test(`has every byte where its index says: matrices ${what}`, async () => {
      const path = join(folder, `${lengths.length}-${lengths[0]}`);
      const matrices = lengths.map((byteLength, seed) => ({
        form: { type: "f32", rows: 1, cols: byteLength, groupSize: undefined, hasZeros: undefined } as const,
        checksum: String(seed),
        bytes: bytesOf(byteLength, seed),
      }));
      await writeCacheFile(path, "key", matrices);
      const index = readCacheIndex(path, "key");
      const file = readFileSync(path);
      assert.equal(index?.matrices.length, matrices.length);
      let end = 0;
      for (const [i, { offset, byteLength, checksum }] of index.matrices.entries()) {
        assert.equal(offset % 4096, 0);
        assert.equal(checksum, String(i));
        if (i > 0)
          assert.ok(
            file.subarray(end, offset).every((byte) => byte === 0),
            "gaps are zero",
          );
        end = offset + byteLength;
        assert.ok(file.subarray(offset, end).equals(matrices[i]?.bytes ?? Buffer.of()), `matrix ${i}`);
      }
      assert.equal(file.length, end);
    });
  }
});
