import { schedulingOptions } from "@octavo/engine/options";
import {
  checkOptionNames,
  inGroup,
  option,
  type OptionsOf,
  type OptionType,
  type ResolvedOptions,
  resolveOptions,
} from "@octavo/protocol/options";
import { resolveFormats } from "@octavo/text/parsers/registry";
import { conventionNames } from "@octavo/tracing";
import { checkDetectorConfig } from "./detectors/create-detectors.js";
import { tagOf } from "./http/caller.js";
import { checkTenantSettings, defaultTenantSettings, tenantsFile } from "./tenants/tenant-settings.js";
import { checkTracingConfig } from "./tracing/tracing-config.js";

const replicaName: OptionType<string> = {
  ...option.text("name"),
  expects: "up to 128 letters, digits and characters of _.:@/+=-",
  accepts: (value) => value === "" || tagOf(value) !== undefined,
};

/** What is written as a number is one. */
const attributeValue: OptionType<string | number> = {
  ...option.text("value"),
  expects: "text or a number",
  accepts: (value) => typeof value === "string" || typeof value === "number",
  parse: (text) => (/^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text),
  show: String,
};

/** Ranges depend on the threshold: `checkDetectorConfig` knows them. */
const anyNumber: OptionType<number> = { ...option.number(), accepts: (value) => typeof value === "number" };

/** Server options. Adding one is a row here and the code that reads it. */
export const serverOptions = {
  ...inGroup("Server", {
    host: { flag: "host", type: option.text("address"), default: "127.0.0.1", help: "address to listen on" },
    /** 0 takes any free port. */
    port: {
      flag: "port",
      type: option.integer({ min: 0, max: 65_535 }, "port"),
      default: 8000,
      help: "port to listen on; 0 takes a free one",
    },
    /** Empty: no key is asked for. Any of them opens `/v1/*`, `/tokenize` and `/detokenize`. */
    apiKeys: {
      flag: "api-key",
      type: option.list(nonEmpty("key")),
      isRepeated: true,
      environment: ["OCTAVO_API_KEY", "VLLM_API_KEY"],
      default: [],
      defaultText: "$OCTAVO_API_KEY or $VLLM_API_KEY; without either, no key is asked for",
      help: "key that requests must carry; may be given several times",
    },
    /** Which of several servers this is; every answer and span says so. Empty: they do not. */
    replicaId: {
      flag: "replica-id",
      type: replicaName,
      default: "",
      help: "which of several servers this is; answers and spans say so",
    },
    /** Names that requests may use; responses carry the first. Empty: the model's own name. */
    servedModelNames: {
      flag: "served-model-name",
      type: option.list(nonEmpty("name")),
      default: [],
      defaultText: "the model's own",
      help: "names that requests may use",
    },
    /** Largest request body. */
    maxBodyBytes: {
      flag: "max-body-size",
      type: option.bytes({ min: 1024, max: 2 ** 31 - 1 }),
      default: 32 * 2 ** 20,
      help: "largest request body",
    },
    /** All headers of a request together. */
    maxHeaderBytes: { type: option.bytes({ min: 1024, max: 2 ** 24 }), default: 32 * 1024 },
    /** For the headers to arrive. */
    headersTimeoutMs: { type: option.seconds({ min: 1 }), default: 15_000 },
    /** For the body to arrive, from its first read. */
    bodyTimeoutMs: { type: option.seconds({ min: 1 }), default: 60_000 },
    /** A client that reads nothing of its answer for so long is cut off; 0 is off. */
    stallTimeoutMs: { type: option.seconds(), default: 60_000 },
    keepAliveTimeoutMs: { type: option.seconds(), default: 65_000 },
    /** 0 is no limit. */
    maxConnections: { type: option.integer({ min: 0, max: 2 ** 31 - 1 }), default: 8192 },
    /** How long `drain` lets running requests go on. */
    drainTimeoutMs: {
      flag: "drain-timeout",
      type: option.seconds(),
      default: 30_000,
      help: "time for running requests after SIGTERM",
    },
    /** Browser origins to answer, or `*`; empty sends no CORS headers. */
    corsOrigins: {
      flag: "allowed-origins",
      type: option.list(option.text("origin")),
      default: [],
      defaultText: "none",
      help: "browser origins to answer, or *",
    },
    logLevel: {
      flag: "log-level",
      type: option.choice(["trace", "debug", "info", "warn", "error", "fatal", "silent"], "level"),
      default: "info",
      help: "least severe lines to log",
    },
    /** One line per finished request. */
    accessLog: {
      offFlag: "disable-access-log",
      type: option.toggle(),
      default: true,
      help: "log no line per request",
    },
    /** Also expose metric names that vLLM has dropped but dashboards still use. */
    enableLegacyMetricNames: {
      flag: "enable-legacy-metric-names",
      type: option.toggle(),
      default: false,
      help: "also expose metric names that vLLM has dropped",
    },
    /** Labels of `vllm:cache_config_info`. */
    cacheConfig: { type: option.pairs(option.text("value")), default: {} },
  }),
  ...inGroup("Requests", {
    /** For a request as a whole, generation included; 0 is off. */
    requestTimeoutMs: {
      flag: "request-timeout",
      type: option.seconds(),
      default: 0,
      defaultText: "0, never",
      help: "end requests that take longer",
    },
    /** For a request to be admitted by the engine, from its arrival; 0 is off. */
    queueTimeoutMs: {
      flag: "queue-timeout",
      type: option.seconds(),
      default: 0,
      defaultText: "0, never",
      help: "end requests that wait longer for admission",
    },
    /** For its first token; 0 is off. */
    firstTokenTimeoutMs: {
      flag: "ttft-timeout",
      type: option.seconds(),
      default: 0,
      defaultText: "0, never",
      help: "end requests that wait longer for their first token",
    },
    /** Allow `chat_template` in requests; rendered in a worker under limits. */
    trustRequestChatTemplate: {
      flag: "trust-request-chat-template",
      type: option.toggle(),
      default: false,
      help: "let requests bring their own chat template",
    },
    /** `string` joins text parts into one string; `openai` gives templates the list of parts. */
    chatTemplateContentFormat: {
      flag: "chat-template-content-format",
      type: option.choice(["auto", "string", "openai"], "format"),
      default: "auto",
      help: "how message parts reach the chat template",
    },
    /** Role of generated chat messages. */
    responseRole: {
      flag: "response-role",
      type: option.text("role"),
      default: "assistant",
      help: "role of generated messages",
    },
    /** Leave tools out of the prompt when `tool_choice` is `none`. */
    excludeToolsWhenToolChoiceNone: {
      flag: "exclude-tools-when-tool-choice-none",
      type: option.toggle(),
      default: false,
      help: "leave tools out of the prompt when tool_choice is none",
    },
    /** How tool calls are read from answers: vLLM's parser name, `auto` (by the chat template) or `none`. */
    toolCallParser: {
      flag: "tool-call-parser",
      type: option.text("name"),
      default: "auto",
      defaultText: "auto, by the chat template; none leaves them in the text",
      help: "format of the model's tool calls",
    },
    /** How reasoning is separated from content; as `toolCallParser`. */
    reasoningParser: {
      flag: "reasoning-parser",
      type: option.text("name"),
      default: "auto",
      defaultText: "auto, by the chat template; none leaves it in the text",
      help: "format of the model's reasoning",
    },
    /** Send usage in every stream, asked for or not. */
    enableForceIncludeUsage: {
      flag: "enable-force-include-usage",
      type: option.toggle(),
      default: false,
      help: "send usage in every stream",
    },
    /** Largest `logprobs`/`top_logprobs`; -1 is the vocabulary. */
    maxLogprobs: {
      flag: "max-logprobs",
      type: option.integer({ min: -1, max: 2 ** 31 - 1 }),
      default: 20,
      help: "most alternatives a request may ask for; -1 for all",
    },
    pooling: {
      flag: "pooling",
      type: option.choice(["mean", "last"], "type"),
      default: "last",
      help: "pooling of embeddings",
    },
  }),
  /** Only the priority policy takes a `priority` other than 0. */
  schedulingPolicy: schedulingOptions.schedulingPolicy,
  /** Let requests make the engine evict, preempt, wait and be slow; the model must have been loaded for it. */
  enableFaultInjection: schedulingOptions.enableFaultInjection,
  ...inGroup("LoRA", {
    /** Let requests load adapters from the server's disk or the hub, and unload them. */
    allowRuntimeLoraUpdating: {
      flag: "allow-runtime-lora-updating",
      type: option.toggle(),
      environment: ["VLLM_ALLOW_RUNTIME_LORA_UPDATING"],
      default: false,
      help: "let requests load adapters from this machine's disk or the hub, and unload them",
    },
  }),
  ...inGroup("Tenants", {
    /** Whom requests are accounted to, and the lanes they run in. Its keys are asked for as `apiKeys` are. */
    tenants: {
      flag: "tenants",
      type: tenantsFile,
      default: defaultTenantSettings,
      help: "JSON file of tenants, lanes and keys",
    },
    /** Tenants that metrics have labels for; later ones are counted together. Each may have 32 features. */
    maxMeteredTenants: { type: option.integer({ min: 0, max: 10_000 }), default: 100 },
  }),
  ...inGroup("Traces", {
    /** Where spans go: OTLP over HTTP; a base address or that of its traces. Empty: nowhere. */
    otlpEndpoint: {
      flag: "otlp-endpoint",
      aliases: ["otlp-traces-endpoint"],
      type: option.text("url"),
      default: "",
      help: "send a span per request to this OpenTelemetry collector (OTLP over HTTP)",
    },
    /** Where OpenTelemetry's server metrics go, in the same way. Empty: nowhere. */
    otlpMetricsEndpoint: {
      flag: "otlp-metrics-endpoint",
      type: option.text("url"),
      default: "",
      help: "send OpenTelemetry's metrics of a generative AI server to this collector (OTLP over HTTP)",
    },
    otlpMetricsIntervalMs: {
      flag: "otlp-metrics-interval",
      type: option.seconds({ min: 1000 }),
      default: 60_000,
      help: "time between two of these",
    },
    /** Headers of everything sent to a collector. */
    otlpHeaders: {
      flag: "otlp-headers",
      type: option.pairs(option.text("value")),
      default: {},
      help: "headers for the collector, such as a key",
    },
    traceConventions: {
      flag: "trace-conventions",
      type: option.list(option.choice(conventionNames)),
      default: ["opentelemetry"],
      help: "attribute vocabularies of the spans",
    },
    /** Attributes of every span, under their own names: what the deployment knows and the server does not. */
    traceAttributes: {
      flag: "trace-attributes",
      type: option.pairs(attributeValue),
      default: {},
      help: "attributes of every span, e.g. ray.serve.deployment_name=llama cluster.replica_count=4",
    },
    /** Share of the traces that begin here which are kept, 0 to 1. */
    traceSampleRatio: {
      flag: "trace-sample-ratio",
      type: option.number({ min: 0, max: 1 }, "share"),
      default: 1,
      help: "share of the traces begun here that is kept",
    },
  }),
  ...inGroup("Alerts", {
    /** Watch latencies, the cache and the tenants, and alert. */
    enableDetectors: {
      offFlag: "no-detectors",
      type: option.toggle(),
      default: true,
      help: "do not watch latencies, cache and tenants",
    },
    /** Alert also when plain ratios and levels are crossed, beside the sequential tests. */
    enableRuleAlerts: {
      flag: "enable-rule-alerts",
      type: option.toggle(),
      default: false,
      help: "alert on plain ratios too, beside the sequential tests",
    },
    /** By name; those left out keep their defaults. */
    detectorThresholds: {
      flag: "detector-thresholds",
      type: option.pairs(anyNumber, "name=number"),
      default: {},
      help: "when to alert, e.g. decodeLatencyFactor=2 kvUsage=0.85",
    },
    /** Where alerts are posted; empty: nowhere. */
    alertWebhook: {
      flag: "alert-webhook",
      type: option.text("url"),
      default: "",
      help: "post alerts there, in the form of Alertmanager's webhook",
    },
    alertWebhookHeaders: {
      flag: "alert-webhook-headers",
      type: option.pairs(option.text("value")),
      default: {},
      help: "headers for the webhook, such as a key",
    },
  }),
  ...inGroup("Costs", {
    /** What the machine costs per hour, in dollars; 0 where it is not known. */
    dollarsPerHour: {
      flag: "rate",
      type: option.number({ min: 0 }, "dollars"),
      default: 0,
      defaultText: "not known",
      help: "what this machine costs per hour",
    },
  }),
};

/** Names follow vLLM's flags; times in ms, sizes in bytes. 0 turns a limit off where that is said. */
export interface ServerConfig extends ResolvedOptions<typeof serverOptions> {}

/** Defaults filled in and every value checked; throws `invalid_option` naming the option. */
export function resolveServerConfig(options: OptionsOf<typeof serverOptions> = {}): ServerConfig {
  checkOptionNames(options, Object.keys(serverOptions), "the server");
  const config = resolveOptions(serverOptions, options);
  resolveFormats(config, []);
  checkTracingConfig(config);
  checkDetectorConfig(config);
  checkTenantSettings(config.tenants, "tenants");
  return config;
}

export const defaultServerConfig: ServerConfig = resolveOptions(serverOptions, {});

function nonEmpty(placeholder: string): OptionType<string> {
  const accepts = (value: unknown): boolean => typeof value === "string" && value !== "";
  return { ...option.text(placeholder), expects: "text that is not empty", accepts };
}
