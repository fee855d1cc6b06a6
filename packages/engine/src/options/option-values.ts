import { existsSync, readFileSync } from "node:fs";
import { OctavoError } from "@octavo/protocol/errors";
import { type OptionType, parseJsonObject } from "@octavo/protocol/options";
import type { AdapterSpec } from "../adapters/adapter.js";
import type { WeightCorruption } from "../faults/corrupt-weights.js";
import { type SpeculativeConfig, speculativeMethods } from "../speculation/speculative-config.js";

/** SEED:SCALE or SEED:SCALE:PATTERN. */
export const weightCorruption: OptionType<WeightCorruption> = {
  expects: "an object with seed and scale",
  accepts: isObject,
  parse(text) {
    const [, seed, scale, pattern] = /^(\d{1,15}):([^:]+)(?::(.+))?$/s.exec(text) ?? [];
    const size = scale?.trim() === "" ? Number.NaN : Number(scale);
    if (seed === undefined || !Number.isFinite(size)) {
      const example = "such as 1:0.05 or 1:0.05:*.mlp.*";
      throw invalid(`expected SEED:SCALE or SEED:SCALE:PATTERN, ${example}, not "${text}"`);
    }
    return { seed: Number(seed), scale: size, ...(pattern !== undefined && { pattern }) };
  },
  show: JSON.stringify,
};

/** vLLM's JSON object of limits by modality, or NAME=COUNT; of modalities, there are images. */
export const imageLimit: OptionType<number> = {
  expects: "an integer of at least 0",
  accepts: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  parse(text) {
    const [, paired] = /^image=(\d+)$/.exec(text) ?? [];
    const given = paired === undefined ? parseJsonObject(text) : { image: Number(paired) };
    const { image: limit, ...rest } = given;
    const count = isObject(limit) ? (limit as { readonly count?: unknown }).count : limit;
    const others = Object.entries(rest).filter(([, other]) => other !== 0);
    if (others.length > 0)
      throw invalid(`there are limits of images alone, and ${others[0]?.[0]} is not taken`);
    if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
    throw invalid(`expected {"image": COUNT} or image=COUNT, not ${JSON.stringify(text)}`);
  },
  show: (count) => JSON.stringify({ image: count }),
};

/** vLLM's JSON object for image processors; of its keys, the most pixels of an image. */
export const imagePixels: OptionType<number> = {
  expects: "a positive integer",
  accepts: (value) => Number.isSafeInteger(value) && Number(value) >= 1,
  parse(text) {
    const { max_pixels: pixels, ...rest } = parseJsonObject(text);
    const [other] = Object.keys(rest);
    if (other !== undefined)
      throw invalid(`of an image processor, max_pixels can be set, and ${other} cannot`);
    if (typeof pixels === "number" && Number.isSafeInteger(pixels) && pixels >= 1) return pixels;
    throw invalid(`expected {"max_pixels": COUNT}, not ${JSON.stringify(text)}`);
  },
  show: (pixels) => JSON.stringify({ max_pixels: pixels }),
};

/** A device to run on. */
export const deviceName: OptionType<string> = {
  expects: "cpu, auto, webgpu or webgpu:ADAPTER",
  accepts: (value) => typeof value === "string" && isDevice(value),
  parse(text) {
    if (isDevice(text)) return text;
    throw invalid(`expected cpu, auto, webgpu or webgpu:ADAPTER, not "${text}"`);
  },
  show: (device) => device,
};

function isDevice(text: string): boolean {
  return /^(cpu|auto|webgpu(:.+)?)$/s.test(text);
}

/** vLLM's two ways to name an adapter: NAME=PATH, or a JSON object with `name`, `path` and perhaps `base_model_name`. */
export const adapterSpec: OptionType<AdapterSpec> = {
  expects: "an object with name and path",
  accepts: isObject,
  parse: (text) => (text.trimStart().startsWith("{") ? adapterFromJson(text) : adapterFromPair(text)),
  show: ({ name, path }) => `${name}=${path}`,
};

function adapterFromPair(text: string): AdapterSpec {
  const [, name, path] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (name === undefined || path === undefined)
    throw invalid(`expected NAME=PATH or a JSON object, not "${text}"`);
  return { name, path };
}

function adapterFromJson(text: string): AdapterSpec {
  const { name, path, base_model_name: baseModelName, ...rest } = parseJsonObject(text);
  if (typeof name !== "string" || name === "" || typeof path !== "string" || path === "")
    throw invalid("the JSON object needs `name` and `path`, both strings");
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw invalid(`the JSON object has an unknown field ${unknown}`);
  if (baseModelName === undefined || baseModelName === null) return { name, path };
  if (typeof baseModelName === "string") return { name, path, baseModelName };
  throw invalid("base_model_name must be a string");
}

/** vLLM's rule: the name of a file that exists is read, anything else is the template itself. */
export const templateSource: OptionType<string> = {
  expects: "a template",
  accepts: (value) => typeof value === "string",
  parse(text) {
    if (existsSync(text)) return readFileSync(text, "utf8");
    if (/[{}\n]/.test(text)) return text;
    throw invalid(`there is no file ${text}`);
  },
  show: (template) => template,
};

/** vLLM's JSON object. What the fields may be is checked by `resolveSpeculativeConfig`. */
export const speculativeConfig: OptionType<SpeculativeConfig> = {
  expects: "an object with method",
  accepts: isObject,
  parse: parseSpeculativeConfig,
  show: JSON.stringify,
};

type FieldType = "string" | "number";

const numSpeculativeTokens = { num_speculative_tokens: "number" } as const;
const fields: Readonly<Record<SpeculativeConfig["method"], Readonly<Record<string, FieldType>>>> = {
  ngram: { ...numSpeculativeTokens, prompt_lookup_min: "number", prompt_lookup_max: "number" },
  suffix: {
    ...numSpeculativeTokens,
    suffix_decoding_max_tree_depth: "number",
    suffix_decoding_max_cached_requests: "number",
    suffix_decoding_max_spec_factor: "number",
    suffix_decoding_min_token_prob: "number",
  },
  draft_model: { ...numSpeculativeTokens, model: "string", revision: "string", quantization: "string" },
  eagle3: { ...numSpeculativeTokens, model: "string", revision: "string" },
  mtp: numSpeculativeTokens,
};

/** vLLM's older names of `mtp`, one for each family whose layers are read here. */
const mtpAliases: readonly unknown[] = ["deepseek_mtp", "glm4_moe_mtp", "qwen3_next_mtp", "qwen3_5_mtp"];
/** vLLM's names of methods that nothing here runs. */
const otherMethods =
  /^(eagle|medusa|mlp_speculator|.*_mtp|ngram_gpu|draft_tensor_parallel|dflash|dspark|custom_class)/;

const methodNames = `${speculativeMethods.slice(0, -1).join(", ")} or ${speculativeMethods.at(-1)}`;

function parseSpeculativeConfig(text: string): SpeculativeConfig {
  const given = parseJsonObject(text);
  const method = methodOf(given);
  const known = fields[method];
  const config: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(given)) {
    if (name === "method" || value === null || isRedundant(name, value, method)) continue;
    const type = known[name];
    if (type === undefined)
      throw invalid(`${method} has no field ${name}; it has ${Object.keys(known).join(", ")}`);
    if (typeof value !== type) throw invalid(`${name} must be a ${type}`);
    config[camelCase(name)] = value as string | number;
  }
  if (method !== "draft_model" && method !== "eagle3") return { ...config, method };
  const { model } = config;
  if (typeof model === "string") return { ...config, method, model };
  throw invalid(
    method === "eagle3"
      ? "eagle3 needs `model`: the folder or Hugging Face id of a head that was trained with the model"
      : "draft_model needs `model`: a folder, a .gguf file or a Hugging Face id",
  );
}

/** vLLM's rule: without a method, `model` is a draft model, unless it is written [ngram]. */
function methodOf({ method, model }: Readonly<Record<string, unknown>>): SpeculativeConfig["method"] {
  if (mtpAliases.includes(method)) return "mtp";
  const known = speculativeMethods.find((name) => name === method);
  if (known !== undefined) return known;
  if (method === undefined || method === null) {
    if (typeof model === "string") return isNgram(model) ? "ngram" : "draft_model";
    throw invalid(`the JSON object needs \`method\`: ${methodNames}`);
  }
  const isKnown = typeof method === "string" && otherMethods.test(method);
  throw invalid(
    `method must be ${methodNames}, not ${JSON.stringify(method).slice(0, 100)}` +
      (isKnown ? ", which vLLM has and Octavo does not" : ""),
  );
}

/** A field of vLLM's that states what always holds here. */
function isRedundant(name: string, value: unknown, method: SpeculativeConfig["method"]): boolean {
  if (name === "draft_tensor_parallel_size") return value === 1;
  return name === "model" && method === "ngram" && typeof value === "string" && isNgram(value);
}

export function isNgram(model: string): boolean {
  return model === "[ngram]" || model === "ngram";
}

function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_option", message);
}
