import type { SpeculativeConfig } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { InvalidArgumentError } from "commander";
import { parseJsonObject } from "./parse.js";

type FieldType = "text" | "number";

/** vLLM's fields by method; what they may be is checked by the engine. */
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
  draft_model: { ...numSpeculativeTokens, model: "text", revision: "text", quantization: "text" },
};

/** vLLM's names of methods that guess with weights made for one model; there is nothing here that runs them. */
const otherMethods =
  /^(eagle|medusa|mlp_speculator|mtp|.*_mtp|ngram_gpu|draft_tensor_parallel|dflash|dspark|custom_class)/;

/** `--speculative-config`: a JSON object in vLLM's form. */
export function parseSpeculativeConfig(text: string): SpeculativeConfig {
  const given = parseJsonObject(text);
  const method = methodOf(given);
  const known = fields[method];
  const config: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(given)) {
    if (name === "method" || value === null || isWithoutMeaning(name, value, method)) continue;
    const type = known[name];
    if (type === undefined)
      throw new InvalidArgumentError(
        `${method} knows no field ${name}; it has ${Object.keys(known).join(", ")}.`,
      );
    if (type === "text" ? typeof value !== "string" : typeof value !== "number")
      throw new InvalidArgumentError(`${name} must be ${type === "text" ? "text" : "a number"}.`);
    config[camelCase(name)] = value as string | number;
  }
  if (method === "draft_model") {
    const { model } = config;
    if (typeof model !== "string")
      throw new InvalidArgumentError(
        "draft_model needs `model`: a folder, a .gguf file or a Hugging Face id.",
      );
    return { ...config, method, model };
  }
  return { ...config, method };
}

/** The older flags, one for each field. */
export interface SpeculativeFlags {
  readonly speculativeConfig?: SpeculativeConfig;
  readonly speculativeModel?: string;
  readonly numSpeculativeTokens?: number;
  readonly ngramPromptLookupMin?: number;
  readonly ngramPromptLookupMax?: number;
}

/** What the flags ask for together; undefined where none is given. Throws `invalid_option` for flags that contradict each other. */
export function speculativeConfigOf(flags: SpeculativeFlags): SpeculativeConfig | undefined {
  const { speculativeModel, numSpeculativeTokens: most, ngramPromptLookupMin, ngramPromptLookupMax } = flags;
  const lookup = { promptLookupMin: ngramPromptLookupMin, promptLookupMax: ngramPromptLookupMax };
  const hasLookup = ngramPromptLookupMin !== undefined || ngramPromptLookupMax !== undefined;
  if (flags.speculativeConfig !== undefined) {
    if (speculativeModel !== undefined || most !== undefined || hasLookup)
      throw contradiction("--speculative-config says it all; leave out the older flags");
    return flags.speculativeConfig;
  }
  if (speculativeModel === undefined) {
    if (most === undefined && !hasLookup) return undefined;
    throw contradiction(
      "name a draft model with --speculative-model (or [ngram]), or use --speculative-config",
    );
  }
  if (isNgram(speculativeModel)) return { method: "ngram", numSpeculativeTokens: most, ...lookup };
  if (hasLookup)
    throw contradiction("--ngram-prompt-lookup-min and -max go with --speculative-model [ngram]");
  return { method: "draft_model", model: speculativeModel, numSpeculativeTokens: most };
}

/** vLLM's rule: without a method, `model` is a draft model, unless it is written [ngram]. */
function methodOf({ method, model }: Readonly<Record<string, unknown>>): SpeculativeConfig["method"] {
  if (method === "ngram" || method === "suffix" || method === "draft_model") return method;
  if (method === undefined || method === null) {
    if (typeof model === "string") return isNgram(model) ? "ngram" : "draft_model";
    throw new InvalidArgumentError("the JSON object needs `method`: ngram, suffix or draft_model.");
  }
  const isKnown = typeof method === "string" && otherMethods.test(method);
  throw new InvalidArgumentError(
    `method must be ngram, suffix or draft_model, not ${JSON.stringify(method).slice(0, 100)}` +
      `${isKnown ? ", which vLLM has and Octavo has not" : ""}.`,
  );
}

/** What says in vLLM's files only what holds here anyway. */
function isWithoutMeaning(name: string, value: unknown, method: SpeculativeConfig["method"]): boolean {
  if (name === "draft_tensor_parallel_size") return value === 1;
  return name === "model" && method === "ngram" && typeof value === "string" && isNgram(value);
}

function isNgram(model: string): boolean {
  return model === "[ngram]" || model === "ngram";
}

function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function contradiction(message: string): OctavoError {
  return new OctavoError("invalid_option", message, { param: "speculative_config" });
}
