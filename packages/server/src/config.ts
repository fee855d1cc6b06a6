import type { SchedulingPolicyName } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { ConventionName } from "@octavo/tracing";
import { checkDetectorConfig } from "./detectors/create-detectors.js";
import { tagOf } from "./http/caller.js";
import { resolveFormats } from "@octavo/text/parsers/registry";
import {
  checkTenantSettings,
  defaultTenantSettings,
  type TenantSettings,
} from "./tenants/tenant-settings.js";
import { checkTracingConfig } from "./tracing/tracing-config.js";

/** Names follow vLLM's flags; times in ms, sizes in bytes. 0 turns a limit off where that is said. */
export interface ServerConfig {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Empty: no key is asked for. Any of them opens `/v1/*`, `/tokenize` and `/detokenize`. */
  readonly apiKeys: readonly string[];
  /** Which of several servers this is; every answer and span says so. Empty: they do not. */
  readonly replicaId: string;
  /** Names that requests may use; responses carry the first. Empty: the model's own name. */
  readonly servedModelNames: readonly string[];
  readonly maxBodyBytes: number;
  /** All headers of a request together. */
  readonly maxHeaderBytes: number;
  /** For the headers to arrive. */
  readonly headersTimeoutMs: number;
  /** For the body to arrive, from its first read. */
  readonly bodyTimeoutMs: number;
  /** For a request as a whole, generation included; 0 is off. */
  readonly requestTimeoutMs: number;
  /** For a request to be admitted by the engine, from its arrival; 0 is off. */
  readonly queueTimeoutMs: number;
  /** For its first token; 0 is off. */
  readonly firstTokenTimeoutMs: number;
  /** A client that reads nothing of its answer for so long is cut off; 0 is off. */
  readonly stallTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** 0 is unlimited. */
  readonly maxConnections: number;
  /** How long `drain` lets running requests go on. */
  readonly drainTimeoutMs: number;
  /** Allow `chat_template` in requests; rendered in a worker under limits. */
  readonly trustRequestChatTemplate: boolean;
  /** Let requests load adapters from the server's disk or the hub, and unload them. */
  readonly allowRuntimeLoraUpdating: boolean;
  /** Let requests make the engine evict, preempt, wait and be slow; the model must have been loaded for it. */
  readonly enableFaultInjection: boolean;
  /** `string` joins text parts into one string; `openai` gives templates the list of parts. */
  readonly chatTemplateContentFormat: "auto" | "string" | "openai";
  /** Role of generated chat messages. */
  readonly responseRole: string;
  /** Leave tools out of the prompt when `tool_choice` is `none`. */
  readonly excludeToolsWhenToolChoiceNone: boolean;
  /** How tool calls are read from answers: vLLM's parser name, `auto` (by the chat template) or `none`. */
  readonly toolCallParser: string;
  /** How reasoning is separated from content; as `toolCallParser`. */
  readonly reasoningParser: string;
  /** Send usage in every stream, asked for or not. */
  readonly enableForceIncludeUsage: boolean;
  /** Largest `logprobs`/`top_logprobs`; -1 is the vocabulary. */
  readonly maxLogprobs: number;
  readonly pooling: "mean" | "last";
  /** Only the priority policy takes a `priority` other than 0. */
  readonly schedulingPolicy: SchedulingPolicyName;
  /** Whom requests are accounted to, and the lanes they run in. Its keys are asked for as `apiKeys` are. */
  readonly tenants: TenantSettings;
  /** Also expose metric names that vLLM has dropped but dashboards still use. */
  readonly enableLegacyMetricNames: boolean;
  /** Labels of `vllm:cache_config_info`. */
  readonly cacheConfig: Readonly<Record<string, string>>;
  /** Browser origins to answer, or `*`; empty sends no CORS headers. */
  readonly corsOrigins: readonly string[];
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** One line per finished request. */
  readonly accessLog: boolean;
  /** Where spans go: OTLP over HTTP; a base address or that of its traces. Empty: nowhere. */
  readonly otlpEndpoint: string;
  /** Where OpenTelemetry's server metrics go, in the same way. Empty: nowhere. */
  readonly otlpMetricsEndpoint: string;
  readonly otlpMetricsIntervalMs: number;
  /** Of what is sent there. */
  readonly otlpHeaders: Readonly<Record<string, string>>;
  readonly traceConventions: readonly ConventionName[];
  /** Attributes of every span, under their own names: what the deployment knows and the server does not. */
  readonly traceAttributes: Readonly<Record<string, string | number>>;
  /** Share of the traces that begin here which are kept, 0 to 1. */
  readonly traceSampleRatio: number;
  /** What the machine costs per hour, in dollars; 0 where it is not known. */
  readonly dollarsPerHour: number;
  /** Tenants that metrics tell apart; later ones are counted together. Each may have 32 features. */
  readonly maxMeteredTenants: number;
  /** Watch latencies, the cache and the tenants, and alert. */
  readonly enableDetectors: boolean;
  /** Alert of ratios and levels that are crossed too, beside the sequential tests. */
  readonly enableRuleAlerts: boolean;
  /** By name; those left out keep their defaults. */
  readonly detectorThresholds: Readonly<Record<string, number>>;
  /** Where alerts are posted; empty: nowhere. */
  readonly alertWebhook: string;
  readonly alertWebhookHeaders: Readonly<Record<string, string>>;
}

export const defaultServerConfig: ServerConfig = {
  host: "127.0.0.1",
  port: 8000,
  apiKeys: [],
  replicaId: "",
  servedModelNames: [],
  maxBodyBytes: 32 * 1024 * 1024,
  maxHeaderBytes: 32 * 1024,
  headersTimeoutMs: 15_000,
  bodyTimeoutMs: 60_000,
  requestTimeoutMs: 0,
  queueTimeoutMs: 0,
  firstTokenTimeoutMs: 0,
  stallTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  maxConnections: 8192,
  drainTimeoutMs: 30_000,
  trustRequestChatTemplate: false,
  allowRuntimeLoraUpdating: false,
  enableFaultInjection: false,
  chatTemplateContentFormat: "auto",
  responseRole: "assistant",
  excludeToolsWhenToolChoiceNone: false,
  toolCallParser: "auto",
  reasoningParser: "auto",
  enableForceIncludeUsage: false,
  maxLogprobs: 20,
  pooling: "last",
  schedulingPolicy: "fcfs",
  tenants: defaultTenantSettings,
  enableLegacyMetricNames: false,
  cacheConfig: {},
  corsOrigins: [],
  logLevel: "info",
  accessLog: true,
  otlpEndpoint: "",
  otlpMetricsEndpoint: "",
  otlpMetricsIntervalMs: 60_000,
  otlpHeaders: {},
  traceConventions: ["opentelemetry"],
  traceAttributes: {},
  traceSampleRatio: 1,
  dollarsPerHour: 0,
  maxMeteredTenants: 100,
  enableDetectors: true,
  enableRuleAlerts: false,
  detectorThresholds: {},
  alertWebhook: "",
  alertWebhookHeaders: {},
};

/** Defaults filled in and every value checked; throws `invalid_option` naming the option. */
export function resolveServerConfig(options: Partial<ServerConfig> = {}): ServerConfig {
  const config: ServerConfig = { ...defaultServerConfig, ...options };
  checkInteger("port", config.port, 0, 65_535);
  checkInteger("maxBodyBytes", config.maxBodyBytes, 1024, 2 ** 31 - 1);
  checkInteger("maxHeaderBytes", config.maxHeaderBytes, 1024, 2 ** 24);
  checkInteger("headersTimeoutMs", config.headersTimeoutMs, 1, 2 ** 31 - 1);
  checkInteger("bodyTimeoutMs", config.bodyTimeoutMs, 1, 2 ** 31 - 1);
  checkInteger("requestTimeoutMs", config.requestTimeoutMs, 0, 2 ** 31 - 1);
  checkInteger("queueTimeoutMs", config.queueTimeoutMs, 0, 2 ** 31 - 1);
  checkInteger("firstTokenTimeoutMs", config.firstTokenTimeoutMs, 0, 2 ** 31 - 1);
  checkInteger("stallTimeoutMs", config.stallTimeoutMs, 0, 2 ** 31 - 1);
  checkInteger("keepAliveTimeoutMs", config.keepAliveTimeoutMs, 0, 2 ** 31 - 1);
  checkInteger("drainTimeoutMs", config.drainTimeoutMs, 0, 2 ** 31 - 1);
  checkInteger("maxConnections", config.maxConnections, 0, 2 ** 31 - 1);
  checkInteger("maxLogprobs", config.maxLogprobs, -1, 2 ** 31 - 1);
  checkInteger("otlpMetricsIntervalMs", config.otlpMetricsIntervalMs, 1000, 2 ** 31 - 1);
  checkInteger("maxMeteredTenants", config.maxMeteredTenants, 0, 10_000);
  if (!(config.dollarsPerHour >= 0 && config.dollarsPerHour < Number.POSITIVE_INFINITY)) {
    const message = `dollarsPerHour: expected a number of at least 0, got ${config.dollarsPerHour}`;
    throw new OctavoError("invalid_option", message, { param: "dollarsPerHour" });
  }
  resolveFormats(config, []);
  checkTracingConfig(config);
  checkDetectorConfig(config);
  checkTenantSettings(config.tenants, "tenants");
  if (config.replicaId !== "" && tagOf(config.replicaId) === undefined) {
    const message = `replicaId: expected up to 128 letters, digits and characters of _.:@/+=-, got ${JSON.stringify(config.replicaId.slice(0, 200))}`;
    throw new OctavoError("invalid_option", message, { param: "replicaId" });
  }
  if (config.apiKeys.some((key) => key.length === 0)) {
    throw new OctavoError("invalid_option", "apiKeys: an API key must not be empty", { param: "apiKeys" });
  }
  for (const name of config.servedModelNames) {
    if (name.length === 0)
      throw new OctavoError("invalid_option", "servedModelNames: a name must not be empty", {
        param: "servedModelNames",
      });
  }
  return config;
}

function checkInteger(name: keyof ServerConfig, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new OctavoError(
    "invalid_option",
    `${name}: expected an integer from ${min} to ${max}, got ${value}`,
    { param: name },
  );
}
