import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { readConfigJson } from "@octavo/artifacts/config/config-json";
import { hasAttention } from "@octavo/artifacts/program/recurrent-layers";
import { modelFamilies, planModel } from "@octavo/artifacts/program/registry";
import { openCheckpoint } from "@octavo/engine";
import { kvLayersOf, kvTokenBytes } from "@octavo/kernels";
import { kvBytesPerToken } from "../formats/kv-formats.js";
import { activeParameters, type ModelShape, totalParameters } from "./model-shape.js";
import { readConfigShape, shapeOfConfig } from "./read-shape.js";

const small = {
  hidden_size: 64,
  intermediate_size: 96,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  num_hidden_layers: 8,
  vocab_size: 128,
  sliding_window: 16,
  n_group: 1,
  full_attn_idxs: [1, 5],
  layers_block_type: Array.from({ length: 8 }, (_, layer) => (layer % 4 === 1 ? "attention" : "mamba")),
};

/** Settings that families read in ways of their own. */
const variants: readonly object[] = [
  {},
  { use_sliding_window: true },
  { use_sliding_window: true, max_window_layers: 4 },
  { sliding_window: null },
  { sliding_window_pattern: 3 },
  { layer_types: Array.from({ length: 8 }, (_, layer) => `${layer < 3 ? "full" : "sliding"}_attention`) },
  { attention_bias: true, mlp_bias: true, tie_word_embeddings: false },
  { head_dim: 32, num_key_value_heads: 4 },
  { num_experts: 6, num_local_experts: 6, num_experts_per_tok: 3, moe_intermediate_size: 32 },
  { decoder_sparse_step: 2, mlp_only_layers: [1], shared_expert_intermediate_size: 48 },
];

/** Llama 4's layers have chunks for windows. */
function chunked(types: unknown): readonly string[] {
  return [types].flat().map((type) => String(type).replace("sliding", "chunked"));
}

/** Model types in which some layers keep a state instead of keys and values. */
const recurrentTypes = new Set([
  "qwen3_5_text",
  "qwen3_5_moe_text",
  "qwen3_next",
  "lfm2",
  "lfm2_moe",
  "granitemoehybrid",
  "falcon_h1",
  "nemotron_h",
]);

for (const { modelType } of modelFamilies) {
  test(`a plan reads a ${modelType} config as the engine does`, () => {
    for (const variant of variants) {
      const isLlama4 = modelType === "llama4_text";
      const types = "layer_types" in variant && isLlama4 ? { layer_types: chunked(variant.layer_types) } : {};
      const json = { ...small, model_type: modelType, ...variant, ...types };
      // All layers of Falcon-H1 are alike.
      const isRecurrent = recurrentTypes.has(modelType) && modelType !== "falcon_h1";
      // Gemma 4's last layer has no window, and others have one.
      const isGemma4 = modelType === "gemma4_text";
      if ("layer_types" in variant ? isRecurrent || isGemma4 : isGemma4 && "sliding_window" in variant) {
        assert.throws(() => readConfigShape("config.json", json), /layer|window/);
        continue;
      }
      const config = readConfigJson("config.json", json, "bf16");
      const shape = readConfigShape("config.json", json);
      const { numLayers, numHeads, numKvHeads, headDim, vocabSize } = config;
      assert.deepEqual(
        shape.attention.map(({ window }) => window),
        config.slidingWindows.filter((_, layer) => hasAttention(config, layer)),
      );
      assert.deepEqual(
        [shape.numLayers, shape.numHeads, shape.numKvHeads, shape.headDim, shape.vocabSize, shape.isTied],
        [numLayers, numHeads, numKvHeads, headDim, vocabSize, config.tieWordEmbeddings],
      );
      const { count, perToken } = config.experts ?? {};
      assert.deepEqual([shape.experts?.count, shape.experts?.perToken], [count, perToken]);
      assert.equal(shape.stateElements > 0, recurrentTypes.has(modelType));
      assert.equal(kvBytesPerToken(shape, "bf16"), kvTokenBytes(kvLayersOf(planModel(config).ops), "bf16"));
    }
  });
}

const fixtures = fileURLToPath(new URL("../../../../artifacts/fixtures/", import.meta.url));
const encoders = ["bert", "xlm-roberta", "modernbert", "modernbert-biases"];
const checkpoints = [
  ...readdirSync(`${fixtures}models/checkpoints`).map((folder) => `models/checkpoints/${folder}`),
  ...encoders.map((folder) => `embeddings/${folder}`),
  "images/qwen3-vl-moe",
];

test("a plan counts the parameters that a checkpoint of each family has", async () => {
  const seen = new Set<string>();
  for (const folder of checkpoints) {
    const { config, tensors } = await openCheckpoint(`${fixtures}${folder}`);
    const unused = new Set(planModel(config, tensors).unusedTensors);
    const elements = [...tensors.values()].reduce(
      (sum, { name, shape }) =>
        unused.has(name) ? sum : sum + shape.reduce((product, size) => product * size, 1),
      0,
    );
    assert.equal(totalParameters(shapeOfConfig(config)), elements, folder);
    seen.add(config.architecture);
  }
  assert.deepEqual(
    // RoBERTa's layers are XLM-RoBERTa's.
    modelFamilies
      .filter(({ architecture, modelType }) => !seen.has(architecture) && modelType !== "roberta")
      .map(({ modelType }) => modelType),
    [],
  );
});

test("a config of images and text leaves out what its text's class assumes", () => {
  // As published with gemma-3-4b-it.
  const shape = readConfigShape("config.json", {
    architectures: ["Gemma3ForConditionalGeneration"],
    model_type: "gemma3",
    text_config: {
      hidden_size: 2560,
      intermediate_size: 10240,
      model_type: "gemma3_text",
      num_hidden_layers: 34,
      rope_scaling: { factor: 8, rope_type: "linear" },
      sliding_window: 1024,
    },
    vision_config: { hidden_size: 1152, model_type: "siglip_vision_model" },
  });
  assert.deepEqual([shape.numHeads, shape.numKvHeads, shape.headDim], [8, 4, 256]);
  // 3.88 B parameters of text, of which 0.67 B are the embedding.
  assert.equal(totalParameters(shape), 3_880_263_168);
  assert.equal(shape.attention.filter(({ window }) => window === 1024).length, 29);
});

/** Sizes of Llama 4 Scout's config.json; Maverick's differ as below. */
const scout = {
  model_type: "llama4_text",
  hidden_size: 5120,
  intermediate_size: 8192,
  intermediate_size_mlp: 16384,
  max_position_embeddings: 10485760,
  num_local_experts: 16,
  interleave_moe_layer_step: 1,
  vocab_size: 202048,
  no_rope_layers: [],
  rope_theta: 500000,
  rope_scaling: {
    rope_type: "llama3",
    factor: 16,
    low_freq_factor: 1,
    high_freq_factor: 1,
    original_max_position_embeddings: 8192,
  },
};

test("Llama 4 has 17 billion active parameters, of 109 and 400 with those that see", () => {
  const of = (text: object): ModelShape =>
    readConfigShape("config.json", {
      architectures: ["Llama4ForConditionalGeneration"],
      model_type: "llama4",
      text_config: text,
    });
  const maverick = { ...scout, num_local_experts: 128, interleave_moe_layer_step: 2, rope_scaling: null };
  for (const [text, total] of [
    [scout, 107.8],
    [maverick, 400.7],
  ] as const) {
    const shape = of(text);
    assert.ok(Math.abs(totalParameters(shape) / 1e9 - total) < 0.05);
    assert.ok(Math.abs(activeParameters(shape) / 1e9 - 17.2) < 0.05);
    assert.deepEqual([...new Set(shape.attention.map(({ window }) => window))], [8192, undefined]);
  }
});
