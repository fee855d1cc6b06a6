import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { RopeConfig, RopeScaling } from "./model-config.js";
import { ropeSpec } from "./rope.js";

interface RopeCase {
  readonly name: string;
  readonly headDim: number;
  readonly theta: number;
  readonly maxPositions: number;
  readonly parameters: Readonly<Record<string, number | boolean | string | undefined>>;
  readonly attentionFactor: number;
  readonly inverseFrequencies: readonly number[];
}

const cases = JSON.parse(
  readFileSync(new URL("../../fixtures/rope.json", import.meta.url), "utf8"),
) as readonly RopeCase[];

function scalingOf({ parameters, maxPositions }: RopeCase): RopeScaling {
  const number = (key: string): number => Number(parameters[key]);
  const optional = (key: string): number | undefined =>
    parameters[key] === undefined ? undefined : number(key);
  switch (String(parameters["rope_type"])) {
    case "linear":
      return { kind: "linear", factor: number("factor") };
    case "dynamic":
      return { kind: "dynamic", factor: number("factor"), originalMaxPositions: maxPositions };
    case "llama3":
      return {
        kind: "llama3",
        factor: number("factor"),
        lowFrequencyFactor: number("low_freq_factor"),
        highFrequencyFactor: number("high_freq_factor"),
        originalMaxPositions: number("original_max_position_embeddings"),
      };
    case "yarn":
      return {
        kind: "yarn",
        factor: number("factor"),
        originalMaxPositions: number("original_max_position_embeddings"),
        betaFast: optional("beta_fast") ?? 32,
        betaSlow: optional("beta_slow") ?? 1,
        attentionFactor: optional("attention_factor"),
        mscale: optional("mscale"),
        mscaleAllDim: optional("mscale_all_dim"),
        truncate: parameters["truncate"] !== false,
      };
    default:
      return { kind: "none" };
  }
}

function configOf(ropeCase: RopeCase): RopeConfig {
  const part = Number(ropeCase.parameters["partial_rotary_factor"] ?? 1);
  return {
    theta: ropeCase.theta,
    rotaryDim: Math.trunc(ropeCase.headDim * part),
    layout: "neox",
    scaling: scalingOf(ropeCase),
  };
}

describe("rope frequencies equal transformers'", () => {
  for (const ropeCase of cases) {
    test(ropeCase.name, () => {
      const spec = ropeSpec(configOf(ropeCase), 1);
      assert.equal(spec.inverseFrequencies.length, ropeCase.inverseFrequencies.length);
      for (const [pair, expected] of ropeCase.inverseFrequencies.entries()) {
        const found = spec.inverseFrequencies[pair] ?? Number.NaN;
        assert.ok(
          Math.abs(found - expected) <= 2e-6 * expected,
          `pair ${pair}: ${found} instead of ${expected}`,
        );
      }
      assert.ok(Math.abs(spec.attentionFactor - ropeCase.attentionFactor) < 1e-9);
    });
  }
});

test("GGUF factors divide the frequencies", () => {
  const rope: RopeConfig = { theta: 10000, rotaryDim: 8, layout: "interleaved", scaling: { kind: "none" } };
  const plain = ropeSpec(rope, 1).inverseFrequencies;
  const scaled = ropeSpec({ ...rope, scaling: { kind: "factors", factors: Float32Array.of(1, 2, 4, 8) } }, 1);
  assert.deepEqual(
    scaled.inverseFrequencies,
    plain.map((frequency, pair) => frequency / 2 ** pair),
  );
  assert.equal(scaled.layout, "interleaved");
  assert.equal(scaled.attentionFactor, 1);
});
