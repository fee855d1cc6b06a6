/**
 * Models that take more than text, as far as they take text: config.json's name of the whole, and the model_type of its text part where
 * no family has it. Their text comes from `text_config`, or in older files from config.json itself.
 */
const containers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Gemma3ForConditionalGeneration: {},
  Gemma4ForConditionalGeneration: {},
  Llama4ForConditionalGeneration: {},
  Mistral3ForConditionalGeneration: {},
  LlavaForConditionalGeneration: {},
  LlavaNextForConditionalGeneration: {},
  AyaVisionForConditionalGeneration: {},
  Cohere2VisionForConditionalGeneration: {},
  SmolVLMForConditionalGeneration: {},
  Idefics3ForConditionalGeneration: {},
  InternVLForConditionalGeneration: {},
  // With M-RoPE, positions of text are the same in all three parts: text rotates as in the models without images.
  Qwen2VLForConditionalGeneration: { qwen2_vl: "qwen2", qwen2_vl_text: "qwen2" },
  Qwen2_5_VLForConditionalGeneration: { qwen2_5_vl: "qwen2", qwen2_5_vl_text: "qwen2" },
  Qwen3VLForConditionalGeneration: { qwen3_vl: "qwen3", qwen3_vl_text: "qwen3" },
  Qwen3VLMoeForConditionalGeneration: {},
  KimiK25ForConditionalGeneration: {},
  Qwen3_5ForConditionalGeneration: {},
  Qwen3_5MoeForConditionalGeneration: {},
};

/** Fields read from the top level of config.json if `text_config` lacks them. */
const sharedFields = ["bos_token_id", "eos_token_id", "tie_word_embeddings"] as const;

/** The text part of a model that takes more. */
export interface TextPart {
  /** config.json as if the model were its text part alone. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Name of the whole. */
  readonly container: string;
}

/** Undefined for a model of text alone, and for containers that are not known. */
export function textPart(json: unknown): TextPart | undefined {
  if (!isRecord(json) || !Array.isArray(json["architectures"])) return undefined;
  const [container] = json["architectures"] as unknown[];
  if (typeof container !== "string" || !Object.hasOwn(containers, container)) return undefined;
  const { text_config: within } = json;
  const own: Readonly<Record<string, unknown>> = isRecord(within) ? within : json;
  const type = own["model_type"];
  const shared = Object.fromEntries(
    sharedFields.flatMap((field) => (json[field] === undefined ? [] : [[field, json[field]]])),
  );
  const model_type = typeof type === "string" ? (containers[container]?.[type] ?? type) : type;
  return { json: { ...shared, ...own, architectures: undefined, model_type }, container };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Prefixes of the tensors of text, and what text models have in their place. */
const prefixes: readonly (readonly [string, string])[] = [
  ["model.language_model.", "model."],
  ["language_model.model.", "model."],
  ["language_model.lm_head.", "lm_head."],
  ["model.text_model.", "model."],
  ["model.embed_tokens.", "model.embed_tokens."],
  ["model.layers.", "model.layers."],
  ["model.norm.", "model.norm."],
  ["lm_head.", "lm_head."],
  ["mtp.", "mtp."],
];

/** A tensor's name in a model of the text part alone; undefined for what is not of the text part. */
export function textTensorName(name: string): string | undefined {
  for (const [from, to] of prefixes) if (name.startsWith(from)) return `${to}${name.slice(from.length)}`;
  return undefined;
}
