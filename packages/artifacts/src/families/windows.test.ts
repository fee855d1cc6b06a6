import assert from "node:assert/strict";
import test from "node:test";
import { readConfigJson } from "../config/config-json.js";
import { modelFamilies } from "../program/registry.js";

const used = { use_sliding_window: true };
const late = { ...used, max_window_layers: 4 };
const pattern = { sliding_window_pattern: 3 };

/**
 * Layers with a window ("s") and with full attention ("f") of eight, as transformers 5.23 has them: config.layer_types, or
 * config.sliding_window for all layers where a family's modeling file reads that.
 */
const expected: readonly (readonly [modelType: string, config: object, layers: string])[] = [
  ["llama", used, "ffffffff"],
  ["llama4_text", { attention_chunk_size: 16 }, "sssfsssf"],
  ["llama4_text", { attention_chunk_size: 16, no_rope_layers: [0, 1, 1, 1, 1, 0, 1, 1, 1] }, "fssssfss"],
  ["granite", used, "ffffffff"],
  ["granitemoe", used, "ffffffff"],
  ["olmo2", used, "ffffffff"],
  ["olmoe", used, "ffffffff"],
  ["smollm3", {}, "ffffffff"],
  ["smollm3", late, "fffsfffs"],
  ["mistral", {}, "ssssssss"],
  ["mistral", { sliding_window: null }, "ffffffff"],
  ["mixtral", {}, "ssssssss"],
  ["phi3", {}, "ssssssss"],
  ["qwen2", {}, "ffffffff"],
  ["qwen2", used, "ffffffff"],
  ["qwen2", late, "ffffssss"],
  ["qwen3", late, "ffffssss"],
  ["qwen2_moe", { sliding_window: 0 }, "ffffffff"],
  ["qwen2_moe", used, "sfsfsfsf"],
  ["qwen2_moe", late, "sfsfffff"],
  ["qwen3_moe", {}, "ffffffff"],
  ["qwen3_moe", late, "ssssssss"],
  ["qwen3_vl_moe_text", late, "ffffffff"],
  ["qwen3_5_text", used, "ffffffff"],
  ["qwen3_5_moe_text", used, "ffffffff"],
  ["qwen3_next", used, "ffffffff"],
  ["lfm2", used, "ffffffff"],
  ["lfm2_moe", used, "ffffffff"],
  [
    "granitemoehybrid",
    { layer_types: ["mamba", ...Array.from({ length: 7 }, () => "attention")] },
    "ffffffff",
  ],
  ["falcon_h1", used, "ffffffff"],
  ["glm4_moe", used, "ffffffff"],
  ["ernie4_5_moe", used, "ffffffff"],
  ["deepseek_v2", used, "ffffffff"],
  ["deepseek_v3", used, "ffffffff"],
  ["glm4_moe_lite", used, "ffffffff"],
  ["minimax_m2", used, "ffffffff"],
  ["nemotron_h", { hybrid_override_pattern: "M-M*M-M*" }, "ffffffff"],
  ["gemma", used, "ffffffff"],
  ["gemma2", {}, "sfsfsfsf"],
  ["gemma2", pattern, "sfsfsfsf"],
  ["gemma3_text", {}, "sssssfss"],
  ["gemma3_text", pattern, "ssfssfss"],
  ["gemma4_text", {}, "sssssfsf"],
  ["gemma4_text", pattern, "sssssfsf"],
  ["gpt_oss", pattern, "sfsfsfsf"],
  ["olmo3", {}, "sssfsssf"],
  ["olmo3", pattern, "sssfsssf"],
  ["ministral3", {}, "ssssssss"],
  ["ministral3", { sliding_window: undefined }, "ffffffff"],
  ["seed_oss", used, "ffffffff"],
  ["exaone4", {}, "sssfsssf"],
  ["exaone4", pattern, "ssfssfss"],
  ["exaone4", { sliding_window: null }, "ffffffff"],
  ["cohere2", {}, "sssfsssf"],
  ["cohere2", pattern, "ssfssfss"],
  ["ernie4_5", used, "ffffffff"],
  ["glm", used, "ffffffff"],
  ["glm4", used, "ffffffff"],
  ["granitemoeshared", used, "ffffffff"],
  ["bert", used, "ffffffff"],
  ["xlm-roberta", used, "ffffffff"],
  ["roberta", used, "ffffffff"],
  // A window of 30 reaches 15 tokens to each side.
  ["modernbert", { local_attention: 30 }, "fssfssfs"],
  ["modernbert", { local_attention: 30, global_attn_every_n_layers: 2 }, "fsfsfsfs"],
  ["gemma3_text", { sliding_window: 30, use_bidirectional_attention: true }, "sssssfss"],
];
const base = {
  num_hidden_layers: 8,
  sliding_window: 16,
  hidden_size: 64,
  num_attention_heads: 4,
  num_key_value_heads: 2,
};

for (const [modelType, config, layers] of expected) {
  test(`sliding windows of ${modelType} with ${JSON.stringify(config)}`, () => {
    const { slidingWindows } = readConfigJson(
      "config.json",
      { ...base, model_type: modelType, ...config },
      "bf16",
    );
    assert.equal(slidingWindows.map((window) => (window === 16 ? "s" : "f")).join(""), layers);
  });
}

test("every family is in the table", () => {
  const named = new Set(expected.map(([modelType]) => modelType));
  assert.deepEqual(
    modelFamilies.filter(({ modelType }) => !named.has(modelType)),
    [],
  );
});
