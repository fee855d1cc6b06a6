import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelConfig } from "../program/model-config.js";
import { assertRefused } from "../testing/artifact-assertions.js";
import { readConfigJson } from "./config-json.js";

const read = (json: unknown): ModelConfig => readConfigJson("config.json", json, "bf16");
const small = { hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 3, vocab_size: 100 };

describe("rope", () => {
  const base = { ...small, model_type: "llama", max_position_embeddings: 1000 };

  it("reads every scaling, under old names and new", () => {
    const scaling = (rope_scaling: unknown): unknown => read({ ...base, rope_scaling }).rope.scaling;
    assert.deepEqual(scaling(null), { kind: "none" });
    assert.deepEqual(scaling({ rope_type: "default" }), { kind: "none" });
    assert.deepEqual(scaling({ type: "linear", factor: 2 }), { kind: "linear", factor: 2 });
    assert.deepEqual(scaling({ type: "dynamic", factor: 2 }), {
      kind: "dynamic",
      factor: 2,
      originalMaxPositions: 1000,
    });
    assert.deepEqual(
      scaling({ type: "yarn", factor: 4, original_max_position_embeddings: 500, beta_fast: 16 }),
      {
        kind: "yarn",
        factor: 4,
        originalMaxPositions: 500,
        betaFast: 16,
        betaSlow: 1,
        attentionFactor: undefined,
        mscale: undefined,
        mscaleAllDim: undefined,
        truncate: true,
      },
    );
    const config = read({ ...base, rope_parameters: { rope_type: "linear", rope_theta: 7000, factor: 3 } });
    assert.deepEqual([config.rope.theta, config.rope.scaling], [7000, { kind: "linear", factor: 3 }]);
  });

  it("serves YaRN up to the scaled length", () => {
    const rope_scaling = { type: "yarn", factor: 4, original_max_position_embeddings: 1000 };
    assert.equal(read({ ...base, rope_scaling }).maxPositionEmbeddings, 4000);
    assert.equal(read({ ...base, max_position_embeddings: 9000, rope_scaling }).maxPositionEmbeddings, 9000);
    for (const type of ["linear", "dynamic"]) {
      const scaled = { ...base, max_position_embeddings: 2048, rope_scaling: { type, factor: 2.5 } };
      assert.equal(read(scaled).maxPositionEmbeddings, 5120);
    }
  });

  it("rotates a part of each head", () => {
    assert.equal(read({ ...base, partial_rotary_factor: 0.5 }).rope.rotaryDim, 8);
    assert.equal(
      read({ ...base, rope_parameters: { partial_rotary_factor: 0.25, rope_type: "default" } }).rope
        .rotaryDim,
      4,
    );
    assertRefused(() => read({ ...base, partial_rotary_factor: 0.2 }), "artifact_invalid", /rotates 3 of 16/);
  });

  it("refuses scalings that are unknown or incomplete", () => {
    const scaled = (rope_scaling: unknown) => () => read({ ...base, rope_scaling });
    assertRefused(scaled({ type: "spiral", factor: 2 }), "artifact_unsupported", /"spiral"/);
    assertRefused(
      scaled({ type: "longrope", factor: 2 }),
      "artifact_invalid",
      /longrope .* without short_factor/,
    );
    assertRefused(scaled({ type: "linear" }), "artifact_invalid", /linear rope scaling without factor/);
    assertRefused(scaled({ type: "linear", factor: 0 }), "artifact_invalid", /factor 0/);
    assertRefused(scaled({ type: "yarn", factor: -1 }), "artifact_invalid", /factor -1/);
    assertRefused(
      scaled({ type: "llama3", factor: 2, low_freq_factor: 4, high_freq_factor: 3 }),
      "artifact_invalid",
      /high_freq_factor/,
    );
  });
});
