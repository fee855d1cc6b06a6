import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { GgufStrings } from "./gguf-strings.js";

describe("an array of strings as GGUF has it", () => {
  it("is the same one by one and packed", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 6 }), { maxLength: 20 }), (strings) => {
        const stored = GgufStrings.of(strings);
        assert.equal(stored.length, strings.length);
        assert.deepEqual([...stored], strings);
        assert.deepEqual(
          strings.map((_, index) => stored.at(index)),
          strings,
        );
        assert.equal(stored.at(strings.length), undefined);
        const { text, ends } = stored.pack();
        assert.deepEqual(
          Array.from(ends, (end, index) => text.slice(ends[index - 1] ?? 0, end)),
          strings,
        );
      }),
    );
  });

  it("does not join bytes of two strings to one character", () => {
    const halves = new GgufStrings(
      Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9]),
      Uint32Array.of(8, 17),
    );
    assert.deepEqual(halves.pack(), { text: "\ufffd\ufffd", ends: Uint32Array.of(1, 2) });
    assert.deepEqual([...halves], ["\ufffd", "\ufffd"]);
  });
});
