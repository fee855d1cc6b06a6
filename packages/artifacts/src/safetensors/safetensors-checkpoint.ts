import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { type QuantizationConfig, readTensors } from "../quantization/schemes.js";
import { readJsonFile } from "@octavo/text/files/bounded-json";
import type { TokenizerSource } from "@octavo/text/tokenizer/source";
import type { Checkpoint, StoredTensor } from "../checkpoint/checkpoint.js";
import { readConfigJson } from "../config/config-json.js";
import { textPart, textTensorName } from "../config/container-config.js";
import { readEmbeddingConfig } from "../config/embedding-config.js";
import { readGenerationConfig } from "../config/generation-config.js";
import type { ModelConfig } from "../program/model-config.js";
import { modelFamily } from "../program/registry.js";
import { readSafetensorsFolder } from "./safetensors-folder.js";
import { storageOf } from "../checkpoint/tensor-storage.js";
import { readVision } from "../vision/read-vision.js";
import { readTokenizerFolder } from "@octavo/text/tokenizer/read/tokenizer-folder";

const maxConfigBytes = 4 * 1024 * 1024;

/** A folder in Hugging Face's layout; `files` are the names of what is in it. */
export function openSafetensors(
  folder: string,
  files: readonly string[],
  name: string,
  quantization: string | undefined,
): Checkpoint {
  const configPath = join(folder, "config.json");
  const json = readJsonFile(configPath, maxConfigBytes);
  if (json === undefined) {
    throw new OctavoError("artifact_not_found", `${folder}: holds neither a config.json nor a .gguf file`);
  }
  // Read before the weights, so that an unsupported model is reported as such.
  const asked = readConfigJson(configPath, json, "bf16");
  const all = readSafetensorsFolder(folder);
  if (all === undefined) throw noWeights(folder, files);
  const { container } = textPart(json) ?? {};
  const modules = readEmbeddingConfig(folder, json, asked);
  const own = container === undefined ? named(all, asked) : textTensors(all);
  const stored = new Map([
    ...own,
    ...(modules?.tensors ?? []).map((tensor) => [tensor.name, tensor] as const),
  ]);
  const quantized = readQuantizationConfig(folder, configPath, json);
  const tensors = readTensors(stored, folder, quantized, quantization);
  const config = withoutHead(readConfigJson(configPath, json, storageOf(tensors.values())), json, tensors);
  const embedding = modules?.embedding;
  const generation = readGenerationConfig(join(folder, "generation_config.json"));
  const tokenizer = readTokenizerFolder(folder);
  const ends = [...config.eosTokenIds, ...generation.eosTokenIds, ...tokenizerEndId(tokenizer)];
  const eosTokenIds = [...new Set(ends)].filter((id) => id >= 0 && id < config.vocabSize);
  return {
    format: "safetensors",
    name,
    path: folder,
    config: { ...config, eosTokenIds, ...(embedding !== undefined && { embedding }) },
    generation: generation.defaults,
    tensors,
    tokenizer,
    ...(container !== undefined && {
      container: {
        name: container,
        skippedTensors: all.size - own.size,
        vision: readVision({
          folder,
          container,
          json,
          text: config,
          stored: all,
          readTensors: (tower) => readTensors(tower, folder, quantized, quantization),
        }),
      },
    }),
  };
}

/** Nemotron-H's checkpoints keep the names of the state-space models before it. */
const backboneNames: readonly (readonly [string, string])[] = [
  ["backbone.embeddings.", "model.embed_tokens."],
  ["backbone.norm_f.", "model.norm."],
  ["backbone.", "model."],
];

function withoutBackbone(all: ReadonlyMap<string, StoredTensor>): ReadonlyMap<string, StoredTensor> {
  if (!all.has("backbone.embeddings.weight")) return all;
  return renamed(all, (name) => {
    const [from, to] = backboneNames.find(([prefix]) => name.startsWith(prefix)) ?? ["", ""];
    return `${to}${name.slice(from.length)}`;
  });
}

/** Tensors of the layers alone, as models without a head save them, under the names that they have below one. */
function withPrefix(all: ReadonlyMap<string, StoredTensor>): ReadonlyMap<string, StoredTensor> {
  return all.has("embed_tokens.weight") ? renamed(all, (name) => `model.${name}`) : all;
}

/** Tensors under the names of the family's program. Encoders' have none of the prefix that they get below a head. */
function named(
  all: ReadonlyMap<string, StoredTensor>,
  { architecture }: ModelConfig,
): ReadonlyMap<string, StoredTensor> {
  const { encoder } = modelFamily(architecture);
  if (encoder === undefined) return withPrefix(withoutBackbone(all));
  return renamed(all, (name) =>
    (name.startsWith(encoder.tensorPrefix) ? name.slice(encoder.tensorPrefix.length) : name)
      // Names in checkpoints converted from TensorFlow, as BERT's were.
      .replace(/\.LayerNorm\.gamma$/, ".LayerNorm.weight")
      .replace(/\.LayerNorm\.beta$/, ".LayerNorm.bias"),
  );
}

function renamed(
  all: ReadonlyMap<string, StoredTensor>,
  rename: (name: string) => string,
): ReadonlyMap<string, StoredTensor> {
  return new Map(
    Array.from(all.values(), (tensor) => {
      const name = rename(tensor.name);
      return [name, { ...tensor, name }];
    }),
  );
}

/** A model saved without its head has the embedding in its place, which nothing reads: text is refused. */
function withoutHead(config: ModelConfig, json: unknown, tensors: Checkpoint["tensors"]): ModelConfig {
  if (config.hasHead === false) return config;
  const [name] = (json as { architectures?: readonly string[] | null }).architectures ?? [];
  if (name?.endsWith("Model") !== true || config.tieWordEmbeddings || tensors.has("lm_head.weight"))
    return config;
  return { ...config, tieWordEmbeddings: true, hasHead: false };
}

function textTensors(all: ReadonlyMap<string, StoredTensor>): ReadonlyMap<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  for (const tensor of all.values()) {
    const name = textTensorName(tensor.name);
    if (name !== undefined) tensors.set(name, { ...tensor, name });
  }
  return tensors;
}

/**
 * What says how the weights are quantised: config.json's `quantization_config` (compressed-tensors called it
 * `compression_config` at first), or the files that AutoGPTQ and AutoAWQ wrote beside it before.
 */
function readQuantizationConfig(
  folder: string,
  configPath: string,
  json: unknown,
): QuantizationConfig | undefined {
  const config = (json ?? {}) as { quantization_config?: unknown; compression_config?: unknown };
  const within = config.quantization_config ?? config.compression_config ?? undefined;
  if (within !== undefined) return { path: configPath, fields: within };
  for (const [file, method] of [
    ["quantize_config.json", "gptq"],
    ["quant_config.json", "awq"],
  ] as const) {
    const path = join(folder, file);
    const fields = readJsonFile(path, maxConfigBytes);
    if (typeof fields === "object" && fields !== null)
      return { path, fields: { quant_method: method, ...fields } };
  }
  return undefined;
}

function noWeights(folder: string, files: readonly string[]): OctavoError {
  const pickled = files.find((file) => /^pytorch_model.*\.bin$|\.pth$|\.pt$/.test(file));
  if (pickled === undefined) {
    return new OctavoError("artifact_not_found", `${folder}: holds no .safetensors and no .gguf file`);
  }
  return new OctavoError(
    "artifact_unsupported",
    `${folder}: holds only pickled weights (${pickled}), which can run code when read; convert them to safetensors`,
  );
}

/** Chat variants often change only the tokenizer's EOS; generation must stop at it although config.json was left as it was. */
function tokenizerEndId(tokenizer: TokenizerSource): number[] {
  const { eosToken } = tokenizer.config;
  if (tokenizer.kind !== "tokenizer.json" || eosToken === undefined) return [];
  const added = (tokenizer.json as { added_tokens?: unknown }).added_tokens;
  if (!Array.isArray(added)) return [];
  for (const token of added as unknown[]) {
    const { id, content } = (token ?? {}) as { id?: unknown; content?: unknown };
    if (content === eosToken && typeof id === "number" && Number.isSafeInteger(id)) return [id];
  }
  return [];
}
