import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { kvBytes, kvBytesPerToken, kvBytesReserved } from "../formats/kv-formats.js";
import { weightBytes, weightFormats } from "../formats/weight-formats.js";
import {
  deepseekV3Config,
  gemma2Config,
  gptOssConfig,
  llama31Config,
  mixtralConfig,
  qwen25Config,
  qwen3MoeConfig,
} from "../testing/configs.js";
import { activeParameters, totalParameters } from "./model-shape.js";
import { readConfigShape, readGgufShape } from "./read-shape.js";

const shape = (json: unknown) => readConfigShape("config.json", json);
const bytes = (json: unknown, name: string) => {
  const format = weightFormats.find((candidate) => candidate.name === name);
  assert.ok(format, name);
  return weightBytes(shape(json), format);
};

/** Totals as the hub shows them for these models' safetensors files. */
for (const [name, config, total, active] of [
  ["Llama 3.1 8B", llama31Config, 8_030_261_248, 8_030_261_248],
  ["Qwen2.5 7B", qwen25Config, 7_615_616_512, 7_615_616_512],
  ["Gemma 2 9B", gemma2Config, 9_241_705_984, 9_241_705_984],
  // 46.7 B and 12.9 B in Mistral's words: two of eight experts, everything else in full.
  ["Mixtral 8x7B", mixtralConfig, 46_702_792_704, 46_702_792_704 - 32 * 6 * 3 * 4096 * 14_336],
  ["Qwen3 30B-A3B", qwen3MoeConfig, 30_532_122_624, 30_532_122_624 - 48 * 120 * 3 * 2048 * 768],
  ["DeepSeek V3", deepseekV3Config, 671_026_419_200, 671_026_419_200 - 58 * 248 * 3 * 7168 * 2048],
  ["gpt-oss 20B", gptOssConfig, 20_914_757_184, 20_914_757_184 - 24 * 28 * 3 * 2880 * 2880],
] as const) {
  test(`${name} has its published number of parameters`, () => {
    assert.equal(totalParameters(shape(config)), total);
    assert.ok(
      Math.abs(activeParameters(shape(config)) - active) < 1,
      String(activeParameters(shape(config))),
    );
  });
}

test("KV bytes per token: grouped heads, windows, a latent", () => {
  // 32 layers, keys and values of 8 heads of 128.
  assert.equal(kvBytesPerToken(shape(llama31Config), "bf16"), 32 * 2 * 8 * 128 * 2);
  assert.equal(kvBytesPerToken(shape(llama31Config), "fp8"), 32 * 2 * 8 * 128);
  assert.equal(kvBytesPerToken(shape(llama31Config), "int8"), 32 * 2 * 8 * (128 + 4));
  assert.equal(kvBytesPerToken(shape(qwen25Config), "bf16"), 57_344);
  // 61 layers, one latent of 512 and one rotated key of 64.
  assert.equal(kvBytesPerToken(shape(deepseekV3Config), "bf16"), 61 * 576 * 2);
  // Gemma 2: 21 of 42 layers forget what lies 4096 tokens back.
  const perLayer = 2 * 8 * 256 * 2;
  assert.equal(kvBytes(shape(gemma2Config), "bf16", 8192), 21 * perLayer * (8192 + 4096));
  assert.equal(kvBytes(shape(gptOssConfig), "bf16", 1000), 12 * 2 * 8 * 64 * 2 * (1000 + 128));
  // 1000 tokens are 63 blocks of 16.
  assert.equal(kvBytesReserved(shape(llama31Config), "bf16", 1000), 131_072 * 1008);
});

test("weight bytes by format", () => {
  assert.equal(bytes(llama31Config, "bf16"), 2 * 8_030_261_248);
  // Linear layers: q and o of 4096x4096, k and v of 1024x4096, gate, up and down of 14336x4096.
  const linear = 32 * (2 * 4096 ** 2 + 2 * 1024 * 4096 + 3 * 14_336 * 4096);
  const rest = 2 * (2 * 128_256 * 4096 + 65 * 4096);
  const rows = 32 * (4096 + 1024 + 1024 + 4096 + 2 * 14_336 + 4096);
  assert.equal(bytes(llama31Config, "fp8"), linear + 4 * rows + rest);
  assert.equal(bytes(llama31Config, "int4 (awq, gptq)"), linear / 2 + (linear / 128) * 2.5 + rest);
  // 34 bytes for 32 weights; norms in f32.
  assert.equal(bytes(llama31Config, "gguf Q8_0"), ((linear + 2 * 128_256 * 4096) / 32) * 34 + 65 * 4096 * 4);
});

test("llama.cpp's mixes: as large as the files of these models on the hub, and types for narrow rows", () => {
  for (const [config, name, gigabytes] of [
    [llama31Config, "gguf Q4_K_M", 4.92],
    [llama31Config, "gguf Q5_K_M", 5.73],
    [llama31Config, "gguf Q6_K", 6.6],
    [llama31Config, "gguf Q8_0", 8.54],
    [mixtralConfig, "gguf Q4_K_M", 28.45],
  ] as const) {
    const actual = bytes(config, name) / 1e9;
    assert.ok(Math.abs(actual / gigabytes - 1) < 0.003, `${name}: ${actual} instead of ${gigabytes}`);
  }
  // Rows of 896 are no multiple of 256, so K types give way to Q5_0 and Q8_0.
  const small = {
    ...qwen25Config,
    hidden_size: 896,
    intermediate_size: 4864,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    num_hidden_layers: 1,
  };
  const attention = (2 * 896 * 896 + 128 * 896) * (22 / 32) + 128 * 896 * (34 / 32);
  // 4864 = 19 x 256: the down projection keeps Q6_K.
  const mlp = 2 * 4864 * 896 * (22 / 32) + 896 * 4864 * (210 / 256);
  const ends = 152_064 * 896 * (22 / 32) + 152_064 * 896 * (34 / 32);
  const vectors = 4 * (3 * 896 + 896 + 2 * 128);
  assert.equal(bytes(small, "gguf Q4_K_M"), attention + mlp + ends + vectors);
});

test("the text part of a multimodal config is what is planned", () => {
  const { model_type, ...rest } = gemma2Config;
  const nested = shape({ model_type: "gemma3", text_config: { ...rest, model_type } });
  assert.equal(totalParameters(nested), 9_241_705_984);
});

test("layer_types decide which layers have a window", () => {
  const types = Array.from({ length: 28 }, (_, layer) =>
    layer < 3 ? "full_attention" : "sliding_attention",
  );
  const { attention } = shape({ ...qwen25Config, layer_types: types, sliding_window: 512 });
  assert.deepEqual(
    attention.map(({ window }) => window),
    types.map((type) => (type === "full_attention" ? undefined : 512)),
  );
});

test("configs that cannot be planned name what is wrong", () => {
  for (const [json, code, message] of [
    [[], "artifact_invalid", /not a JSON object/],
    [{ ...llama31Config, model_type: "mamba2" }, "artifact_unsupported", /family "mamba2".*llama/],
    [{ ...llama31Config, model_type: undefined }, "artifact_unsupported", /names no model_type/],
    [{ ...deepseekV3Config, kv_lora_rank: 2048 }, "artifact_invalid", /headDim 2112/],
    [{ ...llama31Config, hidden_size: "large" }, "artifact_invalid", /hidden_size/],
    [{ ...llama31Config, num_hidden_layers: 1e9 }, "artifact_invalid", /numLayers 1000000000/],
    [{ ...llama31Config, num_hidden_layers: 0 }, "artifact_invalid", /numLayers 0/],
    [{ ...llama31Config, hidden_size: 4097 }, "artifact_invalid", /do not divide/],
    [{ ...mixtralConfig, num_experts_per_tok: 9 }, "artifact_invalid", /num_experts_per_tok 9/],
    [{ ...deepseekV3Config, num_experts_per_tok: 257 }, "artifact_invalid", /num_experts_per_tok 257/],
    [{ ...deepseekV3Config, v_head_dim: 0 }, "artifact_invalid", /v_head_dim 0/],
    [{ ...qwen25Config, layer_types: ["full_attention"] }, "artifact_invalid", /1 layer types for 28/],
    [
      { ...qwen25Config, layer_types: Array(28).fill("linear_attention") },
      "artifact_unsupported",
      /linear_attention/,
    ],
    [{ ...llama31Config, tie_word_embeddings: "no" }, "artifact_invalid", /tie_word_embeddings/],
  ] as const) {
    assert.throws(
      () => shape(json),
      (error) => error instanceof OctavoError && error.code === code && message.test(error.message),
      String(message),
    );
  }
});

test("a GGUF header gives the shape that config.json gives", () => {
  const metadata = new Map<string, unknown>([
    ["general.architecture", "llama"],
    ["llama.embedding_length", 4096],
    ["llama.block_count", 32],
    ["llama.feed_forward_length", 14_336],
    ["llama.context_length", 131_072],
    ["llama.attention.head_count", 32],
    ["llama.attention.head_count_kv", Uint32Array.from({ length: 32 }, () => 8)],
    ["llama.vocab_size", 128_256],
  ]);
  const head = [{ name: "output.weight", shape: [128_256, 4096], byteLength: 1 }];
  assert.deepEqual(readGgufShape("m.gguf", metadata, head), shape(llama31Config));
  assert.equal(readGgufShape("m.gguf", metadata, []).isTied, true);
  const uneven = new Map(metadata).set("llama.attention.head_count_kv", Uint32Array.of(8, 4));
  assert.throws(() => readGgufShape("m.gguf", uneven, head), /differs between layers/);
  assert.throws(
    () => readGgufShape("m.gguf", new Map([["general.architecture", "rwkv7"]]), head),
    /architecture "rwkv7".*llama/,
  );
});
