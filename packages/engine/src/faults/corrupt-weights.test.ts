import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import { WeightCorruptor } from "./corrupt-weights.js";

/** Weights of a root mean square of about 1/2. */
const weights = Float32Array.from({ length: 40_000 }, (_, index) => Math.sin(index * 12.9898) * Math.SQRT1_2);
const bytes = new Uint8Array(weights.buffer);

function noiseOf(corruptor: WeightCorruptor, name: string): Float64Array {
  const corrupted = new Float32Array(corruptor.floats(name, bytes, "f32", "f32").slice().buffer);
  return Float64Array.from(corrupted, (value, index) => value - weights[index]!);
}

describe("corrupted weights", () => {
  test("have normal noise of the given size, and what was read is left alone", () => {
    const before = weights.slice();
    const noise = noiseOf(new WeightCorruptor({ seed: 1, scale: 0.1 }), "a");
    const mean = noise.reduce((sum, one) => sum + one, 0) / noise.length;
    const deviation = Math.sqrt(noise.reduce((sum, one) => sum + one * one, 0) / noise.length);
    assert(Math.abs(mean) < 0.001 && Math.abs(deviation / 0.05 - 1) < 0.02, `${mean} ${deviation}`);
    const beyond = noise.filter((one) => Math.abs(one) > 1.96 * deviation).length / noise.length;
    assert(Math.abs(beyond - 0.05) < 0.006, String(beyond));
    assert.deepEqual(weights, before);
  });

  test("depend on the seed and the tensor's name, and on nothing else", () => {
    const one = new WeightCorruptor({ seed: 7, scale: 0.1 });
    const first = noiseOf(one, "a");
    assert.notDeepEqual(noiseOf(one, "b"), first);
    assert.deepEqual(noiseOf(one, "a"), first);
    assert.deepEqual(noiseOf(new WeightCorruptor({ seed: 7, scale: 0.1 }), "a"), first);
    assert.notDeepEqual(noiseOf(new WeightCorruptor({ seed: 8, scale: 0.1 }), "a"), first);
  });

  test("are given in the type that is packed; scales in proportion to themselves", () => {
    const corruptor = new WeightCorruptor({ seed: 3, scale: 0.5 });
    const wide = corruptor.floats("a", bytes, "f32", "f32");
    assert.deepEqual(corruptor.floats("a", bytes, "f32", "bf16"), convertFloats(wide, "f32", "bf16"));
    const scales = corruptor.scales("a", Float32Array.from([0, 1, -2]));
    assert.equal(scales[0], 0);
    assert(scales[1] !== 1 && scales[2] !== -2);
  });

  test("are those that the pattern names", () => {
    const cases: readonly (readonly [string, string, boolean])[] = [
      ["*", "", true],
      ["model.layers.1.*", "model.layers.1.mlp.up_proj.weight", true],
      ["model.layers.1.*", "model.layers.10.mlp.up_proj.weight", false],
      ["*.mlp.*.weight", "model.layers.10.mlp.up_proj.weight", true],
      ["*.mlp.*.weight", "model.layers.10.mlp.weight", false],
      ["lm_head", "lm_head", true],
      ["lm_head", "lm_head.weight", false],
      ["a*a", "a", false],
      ["a.b", "acb", false],
      ["*a*b*", "xxbxa", false],
    ];
    for (const [pattern, name, expected] of cases)
      assert.equal(new WeightCorruptor({ seed: 1, scale: 1, pattern }).matches(name), expected, pattern);
    const none = new WeightCorruptor({ seed: 1, scale: 1, pattern: "nothing" });
    assert.throws(() => none.checkMatches(["lm_head"]), { code: "invalid_option", param: "corrupt_weights" });
  });

  test("are refused out of range", () => {
    for (const corruption of [
      { seed: -1, scale: 1 },
      { seed: 0.5, scale: 1 },
      { seed: 1, scale: 0 },
      { seed: 1, scale: Number.NaN },
      { seed: 1, scale: 11 },
      { seed: 1, scale: 1, pattern: "" },
      { seed: 1, scale: 1, pattern: "x".repeat(513) },
    ])
      assert.throws(() => new WeightCorruptor(corruption), { code: "invalid_option" });
  });
});
