import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { z } from "zod";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";

const adapterConfigName = "adapter_config.json";

const maxConfigBytes = 4 * 1024 * 1024;

/** The fields of adapter_config.json that are read (peft's LoraConfig, src/peft/tuners/lora/config.py). */
const configSchema = z.object({
  peft_type: z.string(),
  r: z.int().min(1),
  lora_alpha: z.number(),
  use_rslora: z.boolean().nullish(),
  alpha_pattern: z.record(z.string(), z.number()).nullish(),
  bias: z.string().nullish(),
});

/** Fields that ask for unsupported computations, and what they mean. */
const refusedFields: Readonly<Record<string, string>> = {
  use_dora: "DoRA's magnitudes",
  use_qalora: "QA-LoRA's pooled inputs",
  use_bdlora: "block-diagonal adapters",
  lora_bias: "biases of the up projections",
  modules_to_save: "modules that were trained in full",
  trainable_token_indices: "trained token embeddings",
  target_parameters: "adapters of bare parameters",
  layer_replication: "repeated layers",
  alora_invocation_tokens: "adapters that a token switches on",
  arrow_config: "routing between adapters",
  kasa_config: "KaSA's singular values",
  monteclora_config: "MonteCLoRA's sampled weights",
  velora_config: "VeLoRA's projections",
  megatron_config: "Megatron's parallel layers",
};

/** How the additions of an adapter's modules are scaled. */
class AdapterScales {
  readonly #alpha: number;
  readonly #isRankStabilised: boolean;
  /** In order. */
  readonly #patterns: ReadonlyMap<string, { readonly order: number; readonly alpha: number }>;

  constructor(
    alpha: number,
    isRankStabilised: boolean,
    patterns: readonly { readonly name: string; readonly alpha: number }[],
  ) {
    this.#alpha = alpha;
    this.#isRankStabilised = isRankStabilised;
    // The first of equal ones counts, so it is set last.
    this.#patterns = new Map(
      patterns.map((pattern, order) => [pattern.name, { order, alpha: pattern.alpha }] as const).toReversed(),
    );
  }

  /** alpha / r, or alpha / sqrt(r) with rsLoRA (arXiv 2312.03732); the first pattern that ends the module's name counts. */
  of(module: string, rank: number): number {
    let own: { readonly order: number; readonly alpha: number } | undefined;
    for (let start = 0; start >= 0; start = nextPart(module, start)) {
      const found = this.#patterns.get(module.slice(start));
      if (found !== undefined && (own === undefined || found.order < own.order)) own = found;
    }
    return (own?.alpha ?? this.#alpha) / (this.#isRankStabilised ? Math.sqrt(rank) : rank);
  }
}

/** Where the name's next part begins, or -1. */
function nextPart(name: string, start: number): number {
  const dot = name.indexOf(".", start);
  return dot < 0 ? -1 : dot + 1;
}

/**
 * Reads an adapter's configuration.
 * @throws OctavoError `artifact_not_found`, `artifact_invalid`, or `artifact_unsupported` naming what is not done here
 */
export function readAdapterConfig(folder: string): AdapterScales {
  const path = join(folder, adapterConfigName);
  const json = readJsonFile(path, maxConfigBytes);
  if (json === undefined) {
    throw new OctavoError(
      "artifact_not_found",
      `${folder}: holds no ${adapterConfigName}; name the folder that PEFT saved the adapter to`,
    );
  }
  const fields = (json ?? {}) as Readonly<Record<string, unknown>>;
  const type = fields["peft_type"];
  if (typeof type === "string" && type !== "LORA")
    throw artifactUnsupported(path, `is an adapter of type ${type.slice(0, 50)}; only LORA is supported`);
  for (const [field, meaning] of Object.entries(refusedFields)) {
    if (asksForSomething(fields[field]))
      throw artifactUnsupported(path, `has ${field}: ${meaning} are not supported`);
  }
  const config = parseForm(path, json, configSchema);
  if (config.bias !== undefined && config.bias !== null && config.bias !== "none")
    throw artifactUnsupported(
      path,
      `has bias: ${JSON.stringify(config.bias)}; trained biases are not supported`,
    );
  const patterns = Object.entries(config.alpha_pattern ?? {}).map(([pattern, alpha]) => ({
    name: literalPattern(path, pattern),
    alpha,
  }));
  return new AdapterScales(config.lora_alpha, config.use_rslora ?? false, patterns);
}

function asksForSomething(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  return !(typeof value === "object" && Object.keys(value).length === 0);
}

/** Patterns are regular expressions to peft; those in use are names of modules, whose dots match themselves. */
function literalPattern(path: string, pattern: string): string {
  const name = pattern.replace(/^\^/, "").replace(/\$$/, "").replaceAll("\\.", ".");
  if (/^[\w.-]+$/.test(name)) return name;
  throw artifactUnsupported(
    path,
    `has the alpha_pattern ${JSON.stringify(pattern.slice(0, 100))}; only names of modules are supported there`,
  );
}

/** Pickled weights, refused by a message of their own. */
export function noAdapterWeights(folder: string, hasPickle: boolean): OctavoError {
  if (!hasPickle) return artifactInvalid(folder, "holds no adapter_model.safetensors");
  return artifactUnsupported(
    folder,
    "holds only adapter_model.bin, a pickle, which can run code when read; save it as safetensors",
  );
}
