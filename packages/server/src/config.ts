import { schedulingOptions } from "@octavo/engine/options";
import { inGroup, option, type ResolvedOptions, resolveOptions, valueType } from "@octavo/protocol/options";
import { conventionNames } from "@octavo/tracing/conventions";
import {
  thresholdValue,
  attributeValue,
  logLevel,
  mediaHost,
  originList,
  replicaName,
  rootPath,
} from "./config-values.js";
import { defaultTenantSettings, tenantSettings } from "./tenants/tenant-settings.js";

export { tenantSources } from "./tenants/tenant-settings.js";

/** Server options. Adding one is a row here and the code that reads it. */
export const serverOptions = {
  ...inGroup("Server", {
    host: option.text("--host <address>", "address to listen on", { default: "127.0.0.1" }),
    port: option.integer("--port <port>", "port to listen on; 0 takes a free one", {
      min: 0,
      max: 65_535,
      default: 8000,
    }),
    /** In place of host and port. */
    uds: option.text("--uds <path>", "listen on this Unix domain socket instead of host and port"),
    /** As ASGI's: a request's path may begin with it, which is taken away. */
    rootPath: option.of(rootPath, "--root-path <path>", "where a proxy mounts the server, e.g. /llm", {
      default: "",
    }),
    /** With `sslCertfile`: HTTPS. Both are read again at `reload`. */
    sslKeyfile: option.text("--ssl-keyfile <file>", "private key, for HTTPS"),
    sslCertfile: option.text("--ssl-certfile <file>", "certificate with its chain, for HTTPS"),
    sslCiphers: option.text("--ssl-ciphers <list>", "ciphers of HTTPS, as OpenSSL names them", {
      defaultText: "Node's",
    }),
    sslCaCerts: option.text("--ssl-ca-certs <file>", "certificates that clients' are checked against"),
    sslCertReqs: option.integer(
      "--ssl-cert-reqs <n>",
      "clients' certificates: 0 not asked for, 1 asked for, 2 required",
      {
        min: 0,
        max: 2,
        default: 0,
      },
    ),
    /** Empty: no key is asked for. Any of them opens `/v1/*`, `/tokenize` and `/detokenize`. */
    apiKeys: option.of(
      valueType.list(valueType.nonEmpty()),
      "--api-key <key>",
      "key that requests must carry; may be given several times",
      {
        environment: ["OCTAVO_API_KEY", "VLLM_API_KEY"],
        default: [],
        defaultText: "$OCTAVO_API_KEY or $VLLM_API_KEY; without either, no key is asked for",
      },
    ),
    /** Which of several servers this is; every answer and span says so. Empty: they do not. */
    replicaId: option.of(
      replicaName,
      "--replica-id <name>",
      "which of several servers this is; answers and spans say so",
      { default: "" },
    ),
    /** Empty: nobody reads or fills the prefix cache. */
    replicaKey: option.text(
      "--replica-key <key>",
      "what a cluster shows to read the hottest cached prefixes and to fill the cache of a new replica",
      { defaultText: "$OCTAVO_REPLICA_KEY; without it nobody may" },
    ),
    /** Names that requests may use; responses carry the first. Empty: the model's own name. */
    servedModelNames: option.of(
      valueType.list(valueType.nonEmpty()),
      "--served-model-name <name...>",
      "names that requests may use",
      { default: [], defaultText: "the model's own" },
    ),
    /** Of several models, see `CreateServerOptions.others`. */
    maxLoadedModels: option.integer(
      "--max-loaded-models <n>",
      "of several models, those in memory at a time; requests load the others",
      { min: 1, defaultText: "all" },
    ),
    /** What the weights and KV caches of those in memory may take together; 0 is no limit. One alone may take more. */
    maxModelsMemoryBytes: option.bytes(
      "--max-models-memory <size>",
      "of several models, what those in memory may take together",
      { default: 0, defaultText: "0, no limit" },
    ),
    modelLoadTimeoutMs: option.seconds(
      "--model-load-timeout <seconds>",
      "of several models: how long a request waits until its own is loaded",
      { min: 1, default: 120_000 },
    ),
    maxBodyBytes: option.bytes("--max-body-size <size>", "largest request body", {
      min: 1024,
      max: 2 ** 31 - 1,
      default: 32 * 2 ** 20,
    }),
    maxBodyMemoryBytes: option.bytes(
      "--max-body-memory <size>",
      "bodies of all requests in progress together; requests beyond get 503",
      { min: 1024, default: 256 * 2 ** 20 },
    ),
    maxHeaderBytes: option.bytes(undefined, "all headers of a request together", {
      min: 1024,
      max: 2 ** 24,
      default: 32 * 1024,
    }),
    headersTimeoutMs: option.seconds(undefined, "time for the headers to arrive", {
      min: 1,
      default: 15_000,
    }),
    bodyTimeoutMs: option.seconds(undefined, "time for the body to arrive, from its first read", {
      min: 1,
      default: 60_000,
    }),
    stallTimeoutMs: option.seconds(undefined, "cut off clients that read nothing for this long; 0 is off", {
      default: 60_000,
    }),
    keepAliveTimeoutMs: option.seconds(undefined, "close idle connections after this time", {
      default: 65_000,
    }),
    maxConnections: option.integer(undefined, "open connections; 0 is no limit", {
      min: 0,
      max: 2 ** 31 - 1,
      default: 8192,
    }),
    drainTimeoutMs: option.seconds("--drain-timeout <seconds>", "time for running requests after SIGTERM", {
      aliases: ["--shutdown-timeout"],
      default: 30_000,
    }),
    corsOrigins: option.of(originList, "--allowed-origins <origin...>", "browser origins to answer, or *", {
      default: [],
      defaultText: "none",
    }),
    logLevel: option.of(logLevel, "--log-level <level>", "least severe lines to log", {
      aliases: ["--uvicorn-log-level"],
      default: "info",
    }),
    logFormat: option.choice(
      ["auto", "json", "text"],
      "--log-format <format>",
      "json: a JSON object a line on standard output; text: for people, on standard error",
      { default: "auto", defaultText: "auto: text on a terminal, else json" },
    ),
    accessLog: option.toggle("--disable-access-log", "log no line per request", {
      aliases: ["--disable-uvicorn-access-log"],
      turnsOff: true,
      default: true,
    }),
    enableLegacyMetricNames: option.toggle(
      "--enable-legacy-metric-names",
      "also expose metric names that vLLM has dropped",
    ),
    cacheConfig: option.of(valueType.pairs(valueType.text()), undefined, "labels of vllm:cache_config_info", {
      default: {},
    }),
  }),
  ...inGroup("Requests", {
    /** For a request as a whole, generation included; 0 is off. */
    requestTimeoutMs: option.seconds("--request-timeout <seconds>", "end requests that take longer", {
      default: 0,
      defaultText: "0, never",
    }),
    /** For a request to be admitted by the engine, from its arrival; 0 is off. */
    queueTimeoutMs: option.seconds(
      "--queue-timeout <seconds>",
      "end requests that wait longer for admission",
      { default: 0, defaultText: "0, never" },
    ),
    /** For its first token; 0 is off. */
    firstTokenTimeoutMs: option.seconds(
      "--ttft-timeout <seconds>",
      "end requests that wait longer for their first token",
      { default: 0, defaultText: "0, never" },
    ),
    /** Otherwise they are named in `x-octavo-warnings`. */
    strictRequests: option.toggle(
      "--strict-requests",
      "refuse requests with fields that the server does not know",
    ),
    /** Allow `chat_template` in requests; rendered in a worker under limits. */
    trustRequestChatTemplate: option.toggle(
      "--trust-request-chat-template",
      "let requests bring their own chat template",
    ),
    /** `string` joins text parts into one string; `openai` gives templates the list of parts. */
    chatTemplateContentFormat: option.choice(
      ["auto", "string", "openai"],
      "--chat-template-content-format <format>",
      "how message parts reach the chat template",
      { default: "auto" },
    ),
    /** Empty: nothing is fetched for a request; images come in data URLs. */
    allowedMediaDomains: option.of(
      valueType.list(mediaHost),
      "--allowed-media-domains <host...>",
      "fetch images from these hosts, e.g. images.example.com; host:port for other ports than the scheme's own",
      { default: [], defaultText: "none: images come in data URLs" },
    ),
    /** For an image, from resolving its host to its last byte. */
    mediaFetchTimeoutMs: option.seconds(
      "--media-fetch-timeout <seconds>",
      "time for an image to be fetched, redirects included",
      {
        min: 100,
        max: 600_000,
        default: 5000,
        defaultText: "$VLLM_IMAGE_FETCH_TIMEOUT or 5 s",
        environment: ["VLLM_IMAGE_FETCH_TIMEOUT"],
      },
    ),
    responseRole: option.text("--response-role <role>", "role of generated messages", {
      default: "assistant",
    }),
    excludeToolsWhenToolChoiceNone: option.toggle(
      "--exclude-tools-when-tool-choice-none",
      "leave tools out of the prompt when tool_choice is none",
    ),
    /** How tool calls are read from answers: vLLM's parser name, `auto` (by the chat template) or `none`. */
    toolCallParser: option.text("--tool-call-parser <name>", "format of the model's tool calls", {
      default: "auto",
      defaultText: "auto, by the chat template; none leaves them in the text",
    }),
    /** How reasoning is separated from content; as `toolCallParser`. */
    reasoningParser: option.text("--reasoning-parser <name>", "format of the model's reasoning", {
      default: "auto",
      defaultText: "auto, by the chat template; none leaves it in the text",
    }),
    enableReasoningContent: option.toggle(
      "--enable-reasoning-content",
      "send reasoning as reasoning_content too, its older name",
    ),
    enableTokenizerInfoEndpoint: option.toggle(
      "--enable-tokenizer-info-endpoint",
      "answer /tokenizer_info, chat template included",
    ),
    enableForceIncludeUsage: option.toggle("--enable-force-include-usage", "send usage in every stream"),
    /** Largest `logprobs`/`top_logprobs`; -1 is the vocabulary. */
    maxLogprobs: option.integer("--max-logprobs <n>", "most alternatives a request may ask for; -1 for all", {
      min: -1,
      max: 2 ** 31 - 1,
      default: 20,
    }),
    pooling: option.choice(
      ["auto", "mean", "last", "cls", "max"],
      "--pooling <type>",
      "pooling of embeddings",
      {
        default: "auto",
        defaultText: "auto, what the model's modules.json says, else last",
      },
    ),
  }),
  /** Only the priority policy takes a `priority` other than 0. */
  schedulingPolicy: schedulingOptions.schedulingPolicy,
  /** Let requests make the engine evict, preempt, wait and be slow; the model must have been loaded for it. */
  enableFaultInjection: schedulingOptions.enableFaultInjection,
  ...inGroup("LoRA", {
    allowRuntimeLoraUpdating: option.toggle(
      "--allow-runtime-lora-updating",
      "let requests load adapters from this machine's disk or the hub, and unload them",
      { environment: ["VLLM_ALLOW_RUNTIME_LORA_UPDATING"], default: false },
    ),
  }),
  ...inGroup("Tenants", {
    /** Whom requests are accounted to, and the lanes they run in. Its keys are asked for as `apiKeys` are. */
    tenants: option.of(tenantSettings, undefined, "tenants, lanes and keys", {
      default: defaultTenantSettings,
    }),
    /** `all`: what is cached of a prompt, and how fast it is answered, tells any tenant that another sent it. */
    prefixCacheSharing: option.choice(
      ["tenant", "all"],
      "--prefix-cache-sharing <who>",
      "who shares cached prefixes: each tenant (and key of none) by itself, or all",
      { default: "tenant" },
    ),
    maxMeteredTenants: option.integer(
      undefined,
      "tenants with metric labels of their own; each may have 32 features",
      { min: 0, max: 10_000, default: 100 },
    ),
  }),
  ...inGroup("Traces", {
    /** Where spans go: OTLP over HTTP; a base address or that of its traces. Empty: nowhere. */
    otlpEndpoint: option.text(
      "--otlp-endpoint <url>",
      "send a span per request to this OpenTelemetry collector (OTLP over HTTP)",
      { aliases: ["--otlp-traces-endpoint"], default: "" },
    ),
    /** Where OpenTelemetry's server metrics go, in the same way. Empty: nowhere. */
    otlpMetricsEndpoint: option.text(
      "--otlp-metrics-endpoint <url>",
      "send OpenTelemetry's metrics of a generative AI server to this collector (OTLP over HTTP)",
      { default: "" },
    ),
    otlpMetricsIntervalMs: option.seconds("--otlp-metrics-interval <seconds>", "time between two of these", {
      min: 1000,
      default: 60_000,
    }),
    otlpHeaders: option.of(
      valueType.pairs(valueType.text()),
      "--otlp-headers <name=value...>",
      "headers for the collector, such as a key",
      { default: {} },
    ),
    traceConventions: option.choices(
      conventionNames,
      "--trace-conventions <name...>",
      "attribute vocabularies of the spans",
      { default: ["opentelemetry"] },
    ),
    /** Attributes of every span, under their own names: what the deployment knows and the server does not. */
    traceAttributes: option.of(
      valueType.pairs(attributeValue),
      "--trace-attributes <name=value...>",
      "attributes of every span, e.g. ray.serve.deployment_name=llama cluster.replica_count=4",
      { default: {} },
    ),
    traceSampleRatio: option.number(
      "--trace-sample-ratio <share>",
      "share of the traces begun here that is kept",
      { min: 0, max: 1, default: 1 },
    ),
    /** `redacted`: secrets and personal data that have a known form are replaced by their kind. */
    traceContent: option.choice(
      ["none", "redacted", "full"],
      "--trace-content <what>",
      "keep prompts and answers on spans; redacted: without secrets and personal data of known forms",
      { default: "none" },
    ),
    traceContentSampleRatio: option.number(
      "--trace-content-sample-ratio <share>",
      "share of the kept traces that has content",
      { min: 0, max: 1, default: 1 },
    ),
    /** Empty: of all. */
    traceContentTenants: option.texts(
      "--trace-content-tenants <tenant...>",
      "keep content of these tenants only; default: the one of requests that name none",
      { default: [], defaultText: "all" },
    ),
    traceContentMaxCharacters: option.integer(
      "--trace-content-max-characters <n>",
      "characters of content kept of a request",
      { min: 1, max: 16_777_216, default: 65_536 },
    ),
  }),
  ...inGroup("Alerts", {
    enableDetectors: option.toggle("--no-detectors", "do not watch latencies, cache and tenants", {
      turnsOff: true,
      default: true,
    }),
    enableRuleAlerts: option.toggle(
      "--enable-rule-alerts",
      "alert on plain ratios too, beside the sequential tests",
    ),
    /** By name; those left out keep their defaults. */
    detectorThresholds: option.of(
      valueType.pairs(thresholdValue),
      "--detector-thresholds <name=number...>",
      "when to alert, e.g. decodeLatencyFactor=2 kvUsage=0.85",
      { default: {} },
    ),
    alertWebhook: option.text(
      "--alert-webhook <url>",
      "post alerts there, in the form of Alertmanager's webhook",
      { default: "" },
    ),
    alertWebhookHeaders: option.of(
      valueType.pairs(valueType.text()),
      "--alert-webhook-headers <name=value...>",
      "headers for the webhook, such as a key",
      { default: {} },
    ),
  }),
  ...inGroup("Costs", {
    /** What the machine costs per hour, in dollars; 0 where it is not known. */
    dollarsPerHour: option.number("--rate <dollars>", "what this machine costs per hour", {
      min: 0,
      default: 0,
      defaultText: "not known",
    }),
  }),
};

/** Names follow vLLM's flags; times in ms, sizes in bytes. 0 turns a limit off where that is said. */
export interface ServerConfig extends ResolvedOptions<typeof serverOptions> {}

export const defaultServerConfig: ServerConfig = resolveOptions(serverOptions, {});
