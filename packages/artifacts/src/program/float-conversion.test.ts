import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromBfloat16, fromHalf, toBfloat16, toHalf } from "../testing/float-bits.js";
import { TestRandom } from "@octavo/text/testing/random";
import { convertFloats } from "./float-conversion.js";

const random = new TestRandom(7);
const values = Float32Array.from([
  0,
  -0,
  1,
  -1,
  65504,
  65519.99,
  65520,
  1e30,
  -1e30,
  2 ** -14,
  2 ** -24,
  2 ** -25,
  1.5 * 2 ** -25,
  2 ** -26,
  1e-40,
  Infinity,
  -Infinity,
  NaN,
  1 + 2 ** -11,
  1 + 3 * 2 ** -11,
  1 + 2 ** -8,
  1 + 3 * 2 ** -8,
  ...random.floats(2000, 4),
  ...random.floats(2000, 1e-4),
  ...random.floats(500, 1e-7),
  ...random.floats(500, 1e5),
]);

function bytesOf(array: Float32Array | Uint16Array): Uint8Array {
  // Off by one byte, as tensors in a file may be.
  const shifted = new Uint8Array(array.byteLength + 1).subarray(1);
  shifted.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  return shifted;
}

describe("convertFloats", () => {
  for (const [to, round, widen] of [
    ["f16", toHalf, fromHalf],
    ["bf16", toBfloat16, fromBfloat16],
  ] as const) {
    test(`f32 to ${to} rounds to nearest even`, () => {
      const found = new Uint16Array(convertFloats(bytesOf(values), "f32", to).buffer);
      for (const [index, value] of values.entries()) {
        assert.ok(
          Object.is(widen(found[index] ?? 0), widen(round(value))),
          `${value} became ${widen(found[index] ?? 0)}`,
        );
      }
    });

    test(`${to} to f32 is exact for every bit pattern`, () => {
      const patterns = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
      const found = new Float32Array(convertFloats(bytesOf(patterns), to, "f32").buffer);
      for (const bits of patterns)
        assert.ok(Object.is(found[bits], widen(bits)), `0x${bits.toString(16)} became ${found[bits]}`);
    });
  }

  test("f16 and bf16 convert into each other through f32", () => {
    const found = new Uint16Array(
      convertFloats(bytesOf(Uint16Array.of(toHalf(1.5), toHalf(-0.1))), "f16", "bf16").buffer,
    );
    assert.deepEqual([...found], [toBfloat16(1.5), toBfloat16(fromHalf(toHalf(-0.1)))]);
  });
});
