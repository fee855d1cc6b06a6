import type { AdapterSpec, LoadOptions, SchedulingPolicyName } from "@octavo/engine";
import {
  defaultServerConfig,
  type ServerConfig,
  type TenantSettings,
  type TenantSource,
} from "@octavo/server/settings";
import type { FaultFlags } from "./fault-flags.js";
import { type SpeculativeFlags, speculativeConfigOf } from "./speculative-config.js";

/** `octavo serve`'s flags as commander hands them over. Absent means the engine's or the server's default. */
export interface ServeFlags extends SpeculativeFlags, FaultFlags {
  readonly model?: string;
  readonly revision?: string;
  readonly downloadDir?: string;
  readonly weightCache?: string;
  readonly weightsInPlace?: boolean;
  readonly host: string;
  readonly port: number;
  readonly apiKey?: readonly string[];
  readonly replicaId?: string;
  readonly servedModelName?: readonly string[];
  readonly maxModelLen?: number;
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly maxQueuedRequests?: number;
  readonly maxQueuedTokens?: number;
  readonly maxQueuedRequestsPerTenant?: number;
  readonly maxQueuedTokensPerTenant?: number;
  readonly kvCacheMemory?: number;
  readonly gpuMemoryUtilization?: number;
  readonly dtype?: "auto" | "f32" | "f16" | "bf16";
  readonly quantization?: string;
  readonly kvCacheDtype?: "auto" | "f32" | "f16" | "bf16" | "int8";
  readonly blockSize?: number;
  readonly enablePrefixCaching?: boolean;
  readonly enableChunkedPrefill?: boolean;
  readonly longPrefillTokenThreshold?: number;
  readonly maxPrefillStepMs?: number;
  readonly minFreeMemory?: number;
  readonly crashJournal?: string;
  readonly maxLongPartialPrefills?: number;
  readonly schedulingPolicy?: SchedulingPolicyName;
  readonly tenants?: TenantSettings;
  readonly tenantFrom?: TenantSource;
  readonly threads?: number;
  readonly enableLora?: boolean;
  readonly loraModules?: readonly AdapterSpec[];
  readonly maxLoras?: number;
  readonly maxCpuLoras?: number;
  readonly maxLoraRank?: number;
  readonly allowRuntimeLoraUpdating?: boolean;
  readonly chatTemplate?: string;
  readonly chatTemplateContentFormat?: "auto" | "string" | "openai";
  readonly trustRequestChatTemplate?: boolean;
  readonly generationConfig?: "auto" | "vllm";
  readonly maxLogprobs?: number;
  readonly pooling?: "mean" | "last";
  readonly responseRole?: string;
  readonly excludeToolsWhenToolChoiceNone?: boolean;
  readonly toolCallParser?: string;
  readonly reasoningParser?: string;
  readonly enableForceIncludeUsage?: boolean;
  readonly requestTimeout?: number;
  readonly queueTimeout?: number;
  readonly ttftTimeout?: number;
  readonly maxBodySize?: number;
  readonly allowedOrigins?: readonly string[];
  readonly enableLegacyMetricNames?: boolean;
  readonly drainTimeout?: number;
  readonly logLevel?: ServerConfig["logLevel"];
  readonly disableAccessLog?: boolean;
  readonly otlpEndpoint?: string;
  readonly otlpTracesEndpoint?: string;
  readonly otlpMetricsEndpoint?: string;
  readonly otlpMetricsInterval?: number;
  readonly traceStore?: string;
  readonly otlpHeaders?: Readonly<Record<string, string>>;
  readonly traceConventions?: ServerConfig["traceConventions"];
  readonly traceAttributes?: Readonly<Record<string, string>>;
  readonly traceSampleRatio?: number;
  readonly rate?: number;
  readonly meteringLog?: string;
  readonly detectors?: boolean;
  readonly enableRuleAlerts?: boolean;
  readonly detectorThresholds?: Readonly<Record<string, number>>;
  readonly alertWebhook?: string;
  readonly alertWebhookHeaders?: Readonly<Record<string, string>>;
}

/** What the engine is loaded with. */
export function loadOptionsOf(flags: ServeFlags, chatTemplate: string | undefined): LoadOptions {
  return {
    revision: flags.revision,
    downloadDir: flags.downloadDir,
    weightCache: flags.weightCache,
    weightsInPlace: flags.weightsInPlace,
    numThreads: flags.threads,
    dtype: flags.dtype,
    quantization: flags.quantization,
    kvCacheDtype: flags.kvCacheDtype,
    kvCacheMemoryBytes: flags.kvCacheMemory,
    memoryUtilization: flags.gpuMemoryUtilization,
    blockSize: flags.blockSize,
    maxModelLen: flags.maxModelLen,
    maxNumSeqs: flags.maxNumSeqs,
    maxNumBatchedTokens: flags.maxNumBatchedTokens,
    maxQueuedRequests: flags.maxQueuedRequests,
    maxQueuedTokens: flags.maxQueuedTokens,
    maxQueuedRequestsPerTenant: flags.maxQueuedRequestsPerTenant,
    maxQueuedTokensPerTenant: flags.maxQueuedTokensPerTenant,
    enablePrefixCaching: flags.enablePrefixCaching,
    enableChunkedPrefill: flags.enableChunkedPrefill,
    longPrefillTokenThreshold: flags.longPrefillTokenThreshold,
    maxLongPartialPrefills: flags.maxLongPartialPrefills,
    maxPrefillStepMs: flags.maxPrefillStepMs,
    minFreeMemoryBytes: flags.minFreeMemory,
    crashJournal: flags.crashJournal,
    schedulingPolicy: flags.schedulingPolicy,
    generationConfig: flags.generationConfig,
    enableLora: flags.enableLora,
    loraModules: flags.loraModules,
    maxLoras: flags.maxLoras,
    maxCpuLoras: flags.maxCpuLoras,
    maxLoraRank: flags.maxLoraRank,
    speculativeConfig: speculativeConfigOf(flags),
    enableFaultInjection: flags.enableFaultInjection,
    corruptWeights: flags.faultCorruptWeights,
    chatTemplate,
  };
}

/** The server's part of the flags; absent ones are left to the server's defaults. */
export function serverConfigOf(flags: ServeFlags, defaultNames: readonly string[]): Partial<ServerConfig> {
  const given: { readonly [K in keyof ServerConfig]?: ServerConfig[K] | undefined } = {
    host: flags.host,
    port: flags.port,
    apiKeys: apiKeysOf(flags),
    replicaId: flags.replicaId,
    servedModelNames: flags.servedModelName ?? defaultNames,
    maxBodyBytes: flags.maxBodySize,
    requestTimeoutMs: milliseconds(flags.requestTimeout),
    queueTimeoutMs: milliseconds(flags.queueTimeout),
    firstTokenTimeoutMs: milliseconds(flags.ttftTimeout),
    drainTimeoutMs: milliseconds(flags.drainTimeout),
    trustRequestChatTemplate: flags.trustRequestChatTemplate,
    chatTemplateContentFormat: flags.chatTemplateContentFormat,
    allowRuntimeLoraUpdating: flags.allowRuntimeLoraUpdating ?? runtimeLoraFromEnvironment(),
    enableFaultInjection: flags.enableFaultInjection,
    responseRole: flags.responseRole,
    excludeToolsWhenToolChoiceNone: flags.excludeToolsWhenToolChoiceNone,
    toolCallParser: flags.toolCallParser,
    reasoningParser: flags.reasoningParser,
    enableForceIncludeUsage: flags.enableForceIncludeUsage,
    maxLogprobs: flags.maxLogprobs,
    pooling: flags.pooling,
    schedulingPolicy: flags.schedulingPolicy,
    tenants: tenantsOf(flags),
    otlpEndpoint: flags.otlpEndpoint ?? flags.otlpTracesEndpoint,
    otlpMetricsEndpoint: flags.otlpMetricsEndpoint,
    otlpMetricsIntervalMs: milliseconds(flags.otlpMetricsInterval),
    otlpHeaders: flags.otlpHeaders,
    traceConventions: flags.traceConventions,
    traceAttributes: attributesOf(flags.traceAttributes),
    traceSampleRatio: flags.traceSampleRatio,
    dollarsPerHour: flags.rate,
    enableDetectors: flags.detectors === false ? false : undefined,
    enableRuleAlerts: flags.enableRuleAlerts,
    detectorThresholds: flags.detectorThresholds,
    alertWebhook: flags.alertWebhook,
    alertWebhookHeaders: flags.alertWebhookHeaders,
    enableLegacyMetricNames: flags.enableLegacyMetricNames,
    corsOrigins: flags.allowedOrigins,
    logLevel: flags.logLevel,
    accessLog: flags.disableAccessLog === true ? false : undefined,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Keys from the flag, or from the environment, where several are separated by commas. */
function apiKeysOf(flags: ServeFlags): readonly string[] | undefined {
  if (flags.apiKey !== undefined) return flags.apiKey;
  const fromEnvironment = process.env["OCTAVO_API_KEY"] ?? process.env["VLLM_API_KEY"];
  return fromEnvironment
    ?.split(",")
    .map((key) => key.trim())
    .filter((key) => key !== "");
}

/** The tenants file's, with the flag's source in place of its own. */
function tenantsOf({ tenants, tenantFrom }: ServeFlags): TenantSettings | undefined {
  if (tenantFrom === undefined) return tenants;
  return { ...(tenants ?? defaultServerConfig.tenants), tenantFrom };
}

/** vLLM knows no flag for it. */
function runtimeLoraFromEnvironment(): boolean | undefined {
  const value = process.env["VLLM_ALLOW_RUNTIME_LORA_UPDATING"]?.trim().toLowerCase();
  return value === "1" || value === "true" ? true : undefined;
}

/** What is written as a number is one. */
function attributesOf(
  given: ServeFlags["traceAttributes"],
): Readonly<Record<string, string | number>> | undefined {
  if (given === undefined) return undefined;
  const isNumber = /^-?\d{1,15}(\.\d{1,15})?$/;
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, isNumber.test(value) ? Number(value) : value]),
  );
}

function milliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.round(seconds * 1000);
}
