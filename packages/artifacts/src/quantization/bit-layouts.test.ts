import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import { reorderFields, unpackRows } from "./bit-layouts.js";

describe("packed columns in another order", () => {
  for (const bits of [2, 3, 4]) {
    test(`fields of ${bits} bits are those of the columns named`, () => {
      const random = new TestRandom(bits);
      const [rows, cols] = [3, 96];
      const words = Uint32Array.from({ length: (rows * cols * bits) / 32 }, () => random.below(2 ** 32));
      const order = Int32Array.from({ length: cols }, (_, i) => i);
      for (let i = cols - 1; i > 0; i--) {
        const j = random.below(i + 1);
        [order[i], order[j]] = [order[j] ?? 0, order[i] ?? 0];
      }
      const reordered = reorderFields(new Uint8Array(words.buffer), rows, cols, bits, order);
      const before = unpackRows(words, rows, cols, bits);
      const after = unpackRows(new Uint32Array(reordered.buffer), rows, cols, bits);
      for (let at = 0; at < rows * cols; at++) {
        const column = at % cols;
        assert.equal(after[at], before[at - column + (order[column] ?? 0)], `field ${at}`);
      }
    });
  }
});
