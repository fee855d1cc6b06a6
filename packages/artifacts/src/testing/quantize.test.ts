import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { dequantize } from "./dequantize.js";
import { fromBfloat16, fromHalf, toBfloat16, toHalf } from "./float-bits.js";
import { encodeValues, type WrittenType } from "./quantize.js";
import { TestRandom } from "@octavo/text/testing/random";

describe("half and bfloat16", () => {
  it("keep every bit pattern", () => {
    for (let bits = 0; bits < 0x10000; bits++) {
      const half = fromHalf(bits);
      if (!Number.isNaN(half)) assert.equal(toHalf(half), bits);
      const brain = fromBfloat16(bits);
      if (!Number.isNaN(brain)) assert.equal(toBfloat16(brain), bits);
    }
    assert.ok(Number.isNaN(fromHalf(toHalf(NaN))) && Number.isNaN(fromBfloat16(toBfloat16(NaN))));
  });

  it("round to nearest even, through subnormals and overflow", () => {
    assert.equal(toHalf(1 + 2 ** -11), 0x3c00);
    assert.equal(toHalf(1 + 3 * 2 ** -11), 0x3c02);
    assert.equal(toHalf(2 - 2 ** -12), 0x4000);
    assert.equal(toHalf(65519), 0x7bff);
    assert.equal(toHalf(65520), 0x7c00);
    assert.equal(toHalf(2 ** -25), 0);
    assert.equal(toHalf(2 ** -24), 1);
    assert.equal(toHalf(-(2 ** -15)), 0x8200);
    assert.equal(toBfloat16(1 + 2 ** -8), 0x3f80);
    assert.equal(toBfloat16(1 + 3 * 2 ** -8), 0x3f82);
  });
});

describe("quantisers", () => {
  /** Half a step of the coarsest block over values in [-1, 1), with room for the rounding of scales. */
  const bounds: Readonly<Record<WrittenType, number>> = {
    f32: 0,
    f16: 0.0005,
    bf16: 0.004,
    q8_0: 0.0045,
    q6_k: 0.04,
    q5_0: 0.07,
    q5_k: 0.045,
    q4_0: 0.13,
    q4_k: 0.085,
  };
  for (const [type, bound] of Object.entries(bounds) as [WrittenType, number][]) {
    it(`${type} comes back within ${bound}`, () => {
      const values = new TestRandom(11).floats(2048, 1);
      const back = dequantize(type, encodeValues(type, values));
      const worst = Math.max(...back.map((value, i) => Math.abs(value - (values[i] ?? NaN))));
      assert.ok(worst <= bound, `off by ${worst}`);
    });

    it(`${type} keeps zeros and constant blocks`, () => {
      for (const constant of [0, 1, -1]) {
        const back = dequantize(type, encodeValues(type, new Float32Array(512).fill(constant)));
        for (const value of back)
          assert.ok(Math.abs(value - constant) <= 0.02, `${constant} became ${value}`);
      }
    });
  }

  it("refuse values that do not fill a block", () => {
    assert.throws(
      () => encodeValues("q8_0", new Float32Array(33)),
      (error: unknown) => error instanceof OctavoError && error.code === "invalid_option",
    );
  });
});
