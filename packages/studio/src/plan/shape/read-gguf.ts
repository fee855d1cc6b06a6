import type { TensorSize } from "@octavo/engine";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import { OctavoError } from "@octavo/protocol";
import { Fields } from "./fields.js";
import type { ModelShape } from "./model-shape.js";
import { readShape } from "./read-config.js";

/** GGUF's architectures as transformers' model types; Mistral and Mixtral are `llama` there. */
const modelTypes: Readonly<Record<string, string>> = {
  llama: "llama",
  qwen2: "qwen2",
  qwen2moe: "qwen2_moe",
  qwen3: "qwen3",
  qwen3moe: "qwen3_moe",
  gemma: "gemma",
  gemma2: "gemma2",
  gemma3: "gemma3_text",
  phi3: "phi3",
  olmo2: "olmo2",
  olmoe: "olmoe",
  granite: "granite",
  granitemoe: "granitemoe",
  smollm3: "smollm3",
  deepseek2: "deepseek_v3",
  "gpt-oss": "gpt_oss",
};

/** Keys below the architecture's prefix, and the config.json fields they stand for. */
const fields: readonly (readonly [string, string])[] = [
  ["embedding_length", "hidden_size"],
  ["block_count", "num_hidden_layers"],
  ["feed_forward_length", "intermediate_size"],
  ["context_length", "max_position_embeddings"],
  ["attention.head_count", "num_attention_heads"],
  ["attention.head_count_kv", "num_key_value_heads"],
  ["attention.key_length", "head_dim"],
  ["attention.sliding_window", "sliding_window"],
  ["expert_count", "num_experts"],
  ["expert_used_count", "num_experts_per_tok"],
  ["expert_feed_forward_length", "moe_intermediate_size"],
  ["expert_shared_feed_forward_length", "shared_expert_intermediate_size"],
  ["expert_shared_count", "n_shared_experts"],
  ["leading_dense_block_count", "first_k_dense_replace"],
  ["attention.kv_lora_rank", "kv_lora_rank"],
  ["attention.q_lora_rank", "q_lora_rank"],
  ["attention.value_length_mla", "v_head_dim"],
  ["rope.dimension_count", "qk_rope_head_dim"],
];

/**
 * A GGUF header as a shape, by way of the fields that config.json has for the same things.
 * Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, gguf-py/gguf/constants.py.
 * @throws OctavoError `artifact_invalid`, `artifact_unsupported`
 */
export function readGgufShape(
  path: string,
  metadata: ReadonlyMap<string, unknown>,
  tensors: readonly TensorSize[] | undefined,
): ModelShape {
  const architecture = metadata.get("general.architecture");
  const modelType =
    typeof architecture === "string" && Object.hasOwn(modelTypes, architecture)
      ? modelTypes[architecture]
      : undefined;
  if (typeof architecture !== "string" || modelType === undefined) {
    throw new OctavoError(
      "artifact_unsupported",
      `${path}: is of the architecture ${JSON.stringify(architecture)?.slice(0, 60)}; plans are made for ${Object.keys(modelTypes).join(", ")}`,
    );
  }
  const record: Record<string, unknown> = { model_type: modelType };
  for (const [key, field] of fields) {
    const value = metadata.get(`${architecture}.${key}`);
    if (value !== undefined) record[field] = uniform(path, key, value);
  }
  if (record["kv_lora_rank"] !== undefined) {
    const whole = metadata.get(`${architecture}.attention.key_length_mla`);
    const rotated = record["qk_rope_head_dim"];
    if (typeof whole === "number" && typeof rotated === "number")
      record["qk_nope_head_dim"] = whole - rotated;
  }
  const tokens = metadata.get("tokenizer.ggml.tokens");
  record["vocab_size"] =
    metadata.get(`${architecture}.vocab_size`) ?? (tokens instanceof GgufStrings ? tokens.length : undefined);
  // A file without its tensors' list is a split one's first part; converters leave the head out where it is the embedding.
  if (tensors !== undefined) {
    record["tie_word_embeddings"] = !tensors.some(({ name }) => name === "output.weight");
  }
  return readShape(new Fields(path, record), undefined);
}

/** Some keys hold one number per layer; a plan takes them where they agree. */
function uniform(path: string, key: string, value: unknown): unknown {
  if (!ArrayBuffer.isView(value) && !Array.isArray(value)) return value;
  const items = Array.from(value as unknown as ArrayLike<unknown>);
  if (items.every((item) => item === items[0])) return items[0];
  throw new OctavoError(
    "artifact_unsupported",
    `${path}: ${key} differs between layers, which a plan does not take into account`,
  );
}
