import type { LoadOptions } from "@octavo/engine";
import { isNgram, loadingOptions, schedulingOptions } from "@octavo/engine/options";
import { OctavoError } from "@octavo/protocol/errors";
import {
  inGroup,
  option,
  type OptionRows,
  type OptionsOf,
  pickOptions,
  type ResolvedOptions,
  valueType,
} from "@octavo/protocol/options";
import { serverOptions, tenantSources } from "@octavo/server/options";
import type { TenantSettings } from "@octavo/server/settings";
import type { OptionSources } from "./option-sources.js";
import { translateFlags } from "./vllm/translate-flags.js";

/** Options of the command alone. */
const commandRows = {
  ...inGroup("Model", {
    models: option.of(
      valueType.list(valueType.nonEmpty()),
      "--model <model>",
      "the same as the argument; may be given several times",
      { default: [], aliases: ["--models"] },
    ),
    config: option.text(
      "--config <file>",
      "YAML file of flags and their values, as vLLM's; flags and OCTAVO_ variables go before it",
    ),
    auto: option.toggle(
      "--auto",
      "choose context and KV cache by what fits this machine, and say what was chosen",
    ),
    hfToken: option.text("--hf-token <token>", "token for Hugging Face's hub", {
      defaultText: "$HF_TOKEN, or that of `hf auth login`",
    }),
  }),
  ...inGroup("Requests", {
    enableAutoToolChoice: option.toggle(
      "--enable-auto-tool-choice",
      "accepted for compatibility with vLLM; tool calls are always parsed",
    ),
  }),
  ...inGroup("Speculation", {
    speculativeModel: option.text(
      "--speculative-model <model>",
      "draft model, or [ngram]; the older way to say it",
      { aliases: ["--spec-model"] },
    ),
    speculativeMethod: option.text(
      "--spec-method <method>",
      "ngram, suffix, draft_model, eagle3 or mtp, in place of --speculative-config",
    ),
    numSpeculativeTokens: option.integer(
      "--num-speculative-tokens <n>",
      "draft tokens per step with --speculative-model",
      { min: 1, max: 128, defaultText: "5", aliases: ["--spec-tokens"] },
    ),
    ngramPromptLookupMin: option.integer(
      "--ngram-prompt-lookup-min <n>",
      "with --speculative-model [ngram]: shortest match",
      { min: 1, max: 256, defaultText: "the maximum" },
    ),
    ngramPromptLookupMax: option.integer(
      "--ngram-prompt-lookup-max <n>",
      "with --speculative-model [ngram]: longest match",
      { min: 1, max: 256, defaultText: "the minimum, else 5" },
    ),
  }),
  ...inGroup("Tenants", {
    tenants: option.text("--tenants <file>", "JSON file of tenants, lanes and keys"),
    tenantFrom: option.choice(
      tenantSources,
      "--tenant-from <source>",
      "what names a request's tenant: its API key, the x-tenant-id header or the field user",
      { defaultText: "key if keys have tenants, else header" },
    ),
  }),
  ...inGroup("Traces", {
    traceStore: option.text(
      "--trace-store <folder>",
      "keep a span per request in this folder, for octavo traces; auto: its default folder",
    ),
    traceContentRetention: option.seconds(
      "--trace-content-retention <seconds>",
      "with --trace-store and --trace-content: remove content when it is so old; spans stay",
      { min: 60_000, default: 86_400_000 },
    ),
  }),
  ...inGroup("Costs", {
    meteringLog: option.text(
      "--metering-log <file>",
      "append what each request took to this file, one JSON object a line, for octavo costs",
    ),
  }),
  ...inGroup("Faults", {
    faultStartDelay: option.seconds(
      "--fault-start-delay <seconds>",
      "with --enable-fault-injection: wait before loading, as a machine that starts slowly",
      { default: 0 },
    ),
  }),
} satisfies OptionRows;

const groups = [
  "Model",
  "Server",
  "Engine",
  "Speculation",
  "Tenants",
  "LoRA",
  "Requests",
  "Traces",
  "Alerts",
  "Costs",
  "Faults",
];

const rows = { ...loadingOptions, ...schedulingOptions, ...serverOptions, ...commandRows };

/** All options of `octavo serve`, by group. */
export const serveRows = Object.fromEntries(
  Object.entries<OptionRows[string]>(rows).toSorted(
    ([, left], [, right]) => groups.indexOf(left.group ?? "") - groups.indexOf(right.group ?? ""),
  ),
) as typeof rows;

export type ServeOptions = ResolvedOptions<typeof serveRows>;

/** Where they come from beside flags: `--config`, OCTAVO_ variables; and vLLM's flags are understood. */
export const serveSources: OptionSources = {
  environmentPrefix: "OCTAVO_",
  translate: (args) => translateFlags(serveRows, args),
  readFile: async (path) => (await import("./config-file.js")).readConfigFile(serveRows, path),
};

/** Options for `LLM.load`. Throws `invalid_option` for flags that contradict each other. */
export function loadOptionsOf(options: ServeOptions): LoadOptions {
  for (const [flag, isSet] of [
    ["fault-corrupt-weights", options.corruptWeights !== undefined],
    ["fault-start-delay", options.faultStartDelay > 0],
  ] as const)
    if (isSet && !options.enableFaultInjection)
      throw new OctavoError("invalid_option", `--${flag} needs --enable-fault-injection`, { param: flag });
  return {
    ...pickOptions(loadingOptions, options),
    ...pickOptions(schedulingOptions, options),
    speculativeConfig: speculativeConfigOf(options),
  };
}

/** Configuration of the server, with what the file of `--tenants` holds; `defaultNames` are used if no name was given. */
export function serverConfigOf(
  options: ServeOptions,
  defaultNames: readonly string[],
  tenants: TenantSettings = serverOptions.tenants.default,
): OptionsOf<typeof serverOptions> {
  const { servedModelNames, tenantFrom, kvCacheDtype, enablePrefixCaching } = options;
  return {
    ...pickOptions(serverOptions, { ...options, tenants }),
    servedModelNames: servedModelNames.length === 0 ? defaultNames : servedModelNames,
    tenants: tenantFrom === undefined ? tenants : { ...tenants, tenantFrom },
    // Labels of `vllm:cache_config_info` beside the number and size of blocks.
    cacheConfig: { cache_dtype: kvCacheDtype, enable_prefix_caching: String(enablePrefixCaching) },
  };
}

type SpeculativeOptions = Pick<
  ServeOptions,
  | "speculativeConfig"
  | "speculativeModel"
  | "speculativeMethod"
  | "numSpeculativeTokens"
  | "ngramPromptLookupMin"
  | "ngramPromptLookupMax"
>;

/** vLLM's flags for single fields of `--speculative-config`, the older ones and the newer. */
function speculativeConfigOf(options: SpeculativeOptions): LoadOptions["speculativeConfig"] {
  const { speculativeConfig, speculativeMethod, numSpeculativeTokens } = options;
  const speculativeModel =
    options.speculativeModel ?? (speculativeMethod === "ngram" ? "[ngram]" : undefined);
  const { ngramPromptLookupMin: promptLookupMin, ngramPromptLookupMax: promptLookupMax } = options;
  const hasLookup = promptLookupMin !== undefined || promptLookupMax !== undefined;
  const hasDetails = numSpeculativeTokens !== undefined || hasLookup;
  if (speculativeConfig !== undefined) {
    if (speculativeModel !== undefined || speculativeMethod !== undefined || hasDetails)
      throw contradiction("--speculative-config takes the place of the older flags; leave those out");
    return speculativeConfig;
  }
  if (speculativeMethod !== undefined && !isKnownMethod(speculativeMethod, speculativeModel))
    throw contradiction(
      `--spec-method is ngram, suffix, mtp or, with --spec-model, draft_model or eagle3, not ${speculativeMethod}`,
    );
  if (speculativeMethod === "suffix" || speculativeMethod === "mtp")
    return { method: speculativeMethod, numSpeculativeTokens };
  if (speculativeModel === undefined) {
    if (!hasDetails) return undefined;
    throw contradiction(
      "name a draft model with --speculative-model (or [ngram]), or use --speculative-config",
    );
  }
  if (isNgram(speculativeModel))
    return { method: "ngram", numSpeculativeTokens, promptLookupMin, promptLookupMax };
  if (hasLookup)
    throw contradiction("--ngram-prompt-lookup-min and -max go with --speculative-model [ngram]");
  const method = speculativeMethod === "eagle3" ? "eagle3" : "draft_model";
  return { method, model: speculativeModel, numSpeculativeTokens };
}

function isKnownMethod(method: string, model: string | undefined): boolean {
  if (method === "draft_model" || method === "eagle3") return model !== undefined && !isNgram(model);
  if (method === "ngram") return isNgram(model ?? "");
  return (method === "suffix" || method === "mtp") && model === undefined;
}

function contradiction(message: string): OctavoError {
  return new OctavoError("invalid_option", message, { param: "speculative_config" });
}
