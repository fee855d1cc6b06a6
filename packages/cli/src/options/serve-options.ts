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
} from "@octavo/protocol/options";
import { serverOptions, tenantSources } from "@octavo/server/settings";

/** What only the command takes. */
const commandRows = {
  ...inGroup("Model", {
    model: { flag: "model", type: option.text("model"), help: "the same as the argument" },
  }),
  ...inGroup("Requests", {
    enableAutoToolChoice: {
      flag: "enable-auto-tool-choice",
      type: option.toggle(),
      help: "accepted for compatibility with vLLM; tool calls are always parsed",
    },
  }),
  ...inGroup("Speculation", {
    speculativeModel: {
      flag: "speculative-model",
      type: option.text("model"),
      help: "draft model, or [ngram]; the older way to say it",
    },
    numSpeculativeTokens: {
      flag: "num-speculative-tokens",
      type: option.integer({ min: 1, max: 128 }),
      defaultText: "5",
      help: "draft tokens per step with --speculative-model",
    },
    ngramPromptLookupMin: {
      flag: "ngram-prompt-lookup-min",
      type: option.integer({ min: 1, max: 256 }),
      defaultText: "the maximum",
      help: "with --speculative-model [ngram]: shortest match",
    },
    ngramPromptLookupMax: {
      flag: "ngram-prompt-lookup-max",
      type: option.integer({ min: 1, max: 256 }),
      defaultText: "the minimum, else 5",
      help: "with --speculative-model [ngram]: longest match",
    },
  }),
  ...inGroup("Tenants", {
    tenantFrom: {
      flag: "tenant-from",
      type: option.choice(tenantSources, "source"),
      defaultText: "key if keys have tenants, else header",
      help: "what names a request's tenant: its API key, the x-tenant-id header or the field user",
    },
  }),
  ...inGroup("Traces", {
    traceStore: {
      flag: "trace-store",
      type: option.text("folder"),
      help: "keep a span per request in this folder, for octavo traces; auto: its default folder",
    },
  }),
  ...inGroup("Costs", {
    meteringLog: {
      flag: "metering-log",
      type: option.text("file"),
      help: "append what each request took to this file, one JSON object a line, for octavo costs",
    },
  }),
  ...inGroup("Faults", {
    faultStartDelay: {
      flag: "fault-start-delay",
      type: option.seconds(),
      default: 0,
      help: "with --enable-fault-injection: wait before loading, as a machine that starts slowly",
    },
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

/** What the engine is loaded with. Throws `invalid_option` for flags that contradict each other. */
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

/** What the server is configured with; `defaultNames` are the model's where none is given. */
export function serverConfigOf(
  options: ServeOptions,
  defaultNames: readonly string[],
): OptionsOf<typeof serverOptions> {
  const { servedModelNames, tenants, tenantFrom, kvCacheDtype, enablePrefixCaching } = options;
  return {
    ...pickOptions(serverOptions, options),
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
  | "numSpeculativeTokens"
  | "ngramPromptLookupMin"
  | "ngramPromptLookupMax"
>;

/** vLLM's older flags, one for each field, say what `--speculative-config` says. */
function speculativeConfigOf(options: SpeculativeOptions): LoadOptions["speculativeConfig"] {
  const { speculativeConfig, speculativeModel, numSpeculativeTokens } = options;
  const { ngramPromptLookupMin: promptLookupMin, ngramPromptLookupMax: promptLookupMax } = options;
  const hasLookup = promptLookupMin !== undefined || promptLookupMax !== undefined;
  const hasDetails = numSpeculativeTokens !== undefined || hasLookup;
  if (speculativeConfig !== undefined) {
    if (speculativeModel !== undefined || hasDetails)
      throw contradiction("--speculative-config takes the place of the older flags; leave those out");
    return speculativeConfig;
  }
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
  return { method: "draft_model", model: speculativeModel, numSpeculativeTokens };
}

function contradiction(message: string): OctavoError {
  return new OctavoError("invalid_option", message, { param: "speculative_config" });
}
