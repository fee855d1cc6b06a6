import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { GgufStrings, type PackedStrings, packStrings } from "./gguf-strings.js";

function unpacked({ bytes, starts, gap }: PackedStrings): string[] {
  return Array.from(starts.subarray(1), (next, index) =>
    Buffer.from(bytes.subarray(starts[index], next - gap)).toString(),
  );
}

/** As in a file: behind their lengths, whatever bytes they are. */
function stored(...strings: readonly (readonly number[])[]): GgufStrings {
  const starts = [8];
  const bytes = strings.flatMap((string) => {
    starts.push((starts.at(-1) ?? 0) + string.length + 8);
    return [string.length, 0, 0, 0, 0, 0, 0, 0, ...string];
  });
  return new GgufStrings(Buffer.from(bytes), Uint32Array.from(starts));
}

describe("an array of strings as GGUF has it", () => {
  it("is the same one by one and packed", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 6 }), { maxLength: 20 }), (strings) => {
        const array = GgufStrings.of(strings);
        assert.equal(array.length, strings.length);
        assert.deepEqual([...array], strings);
        assert.deepEqual(
          strings.map((_, index) => array.at(index)),
          strings,
        );
        assert.equal(array.at(strings.length), undefined);
        assert.deepEqual(unpacked(array.pack()), strings);
        assert.deepEqual(unpacked(packStrings(strings)), strings);
      }),
    );
  });

  it("does not join bytes of two strings to one character", () => {
    const halves = stored([0xc3], [0xa9]);
    assert.deepEqual(unpacked(halves.pack()), ["\ufffd", "\ufffd"]);
    assert.deepEqual([...halves], ["\ufffd", "\ufffd"]);
  });

  it("does not take a length for the end of a character", () => {
    const letters = Array<number>(0xa9).fill(0x61);
    for (const strings of [
      [[0xc3], letters],
      [letters, [0xc3], letters, [0x62]],
      [[0x62], letters, [0xff]],
      [[0xff], letters],
      [[0x62], [...letters.slice(1), 0xc3], letters],
    ]) {
      const expected = strings.map((string) => Buffer.from(string).toString());
      assert.ok(expected.some((text) => text.includes("\ufffd")));
      const packed = stored(...strings).pack();
      assert.deepEqual(unpacked(packed), expected);
      assert.ok(Buffer.from(packed.bytes).includes("\ufffd"), "as its UTF-8");
    }
    assert.deepEqual(unpacked(stored([0xc3, 0xa9], letters, []).pack()), ["é", "a".repeat(0xa9), ""]);
  });

  it("counts lone surrogates as U+FFFD when strings are packed", () => {
    for (const strings of [
      ["\ud83d", "\ude00"],
      ["a\ude00", "b"],
      ["\ud83d\ud83d\ude00"],
      ["\ud83d\ude00"],
    ]) {
      const { bytes, starts, gap } = packStrings(strings);
      assert.deepEqual(
        unpacked({ bytes, starts, gap }),
        strings.map((text) => Buffer.from(text).toString()),
      );
      assert.equal(
        Buffer.from(bytes).toString(),
        strings.map((text) => Buffer.from(text).toString()).join(""),
      );
    }
  });
});
