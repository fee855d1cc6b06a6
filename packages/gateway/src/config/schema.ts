import { z } from "zod";
import { headerPrefixes } from "../ledger/answer-headers.js";
import { strategyNames } from "../routing/strategies.js";
import { stageDefinitions } from "../stages.js";
import { storeSchema } from "../store/store-config.js";
import { providerNames } from "../targets/providers.js";
import { byteSize, configName, dollars, httpUrl, timeSpan } from "./fields.js";
import { condition } from "./condition.js";

const modelRow = z
  .strictObject({
    /** The target's own name for it; the key where it is left out. */
    name: z.string().min(1).max(256).optional(),
    /** Dollars per million tokens; without them the model costs nothing. */
    input: dollars.optional(),
    cached_input: dollars.optional(),
    output: dollars.optional(),
    /** Dollars for a second of the target's work, for `cost_optimised`; the gateway measures how many seconds a token takes. */
    gpu_second: dollars.optional(),
  })
  .refine(
    ({ gpu_second, input, cached_input, output }) =>
      gpu_second === undefined || (input ?? cached_input ?? output) === undefined,
    "gpu_second stands instead of input, cached_input and output",
  );

const target = z.strictObject({
  provider: z.enum(providerNames),
  /** Without it the provider's own address. */
  url: httpUrl.optional(),
  api_key: z.string().min(1).optional(),
  /** Sent with every request to the target; values are never logged. */
  headers: z.record(z.string(), z.string()).default({}),
  /** Models by the name that clients use. */
  models: z.union([
    z
      .array(configName)
      .min(1)
      .transform((names): Record<string, z.output<typeof modelRow>> =>
        Object.fromEntries(names.map((name) => [name, {}])),
      ),
    z.record(configName, modelRow),
  ]),
  weight: z.number().min(0).default(1),
  /** The highest number of calls at one time; further calls go elsewhere or get `no_target`. */
  max_outstanding: z.int().min(1).optional(),
  connections: z.int().min(1).max(4096).default(256),
  /**
   * Tenants share the target's prefix cache and stored answers, where they are kept apart otherwise: Octavo servers are told the
   * tenant, vLLM and SGLang get a `cache_salt`, and elsewhere `previous_response_id` is refused.
   */
  shared_by_tenants: z.boolean().default(false),
  /** For Bedrock. */
  region: z.string().optional(),
  /** For Azure OpenAI. */
  api_version: z.string().optional(),
  probe: z
    .strictObject({
      /** Without it the provider's; `off` for none. */
      path: z.union([z.string().startsWith("/"), z.literal("off")]).optional(),
      interval: timeSpan.prefault("5s"),
      timeout: timeSpan.prefault("2s"),
    })
    .prefault({}),
  breaker: z
    .strictObject({
      /** Failures in a row that open it. */
      failures: z.int().min(1).default(5),
      /** Share of failures that opens it, once `min_calls` calls ended in `window`. */
      error_rate: z.number().gt(0).max(1).default(0.5),
      min_calls: z.int().min(1).default(20),
      window: timeSpan.prefault("30s"),
      /** How long it stays open before one call probes the target. */
      open_for: timeSpan.prefault("10s"),
    })
    .prefault({}),
});

const routeTarget = z.union([
  configName.transform((name) => ({ target: name, model: undefined, weight: undefined })),
  /** A changing set of targets, such as the replicas of a deployment; cluster.yaml makes them. */
  z.strictObject({ pool: configName }),
  z.strictObject({
    target: configName,
    /** As the target's section names it; without it the model that the client named. */
    model: configName.optional(),
    weight: z.number().min(0).optional(),
  }),
]);

const route = z.strictObject({
  /** Names that clients use; `*` at the end takes any rest. */
  models: z
    .array(z.string().regex(/^[\w.:/@-]*\*?$/, "expected a model's name, with `*` at its end at most"))
    .min(1),
  /** Only calls for which this holds; others look at the routes below. */
  when: condition.optional(),
  strategy: z.enum(strategyNames).default("weighted"),
  targets: z.array(routeTarget).min(1),
  /** Routes whose targets are asked when none of this route's answered. */
  fallbacks: z.array(configName).default([]),
  /** Calls of one session go to one target as long as it is healthy: the header, or the field of the body, that names it. */
  affinity: z
    .union([
      z.strictObject({ header: z.string().min(1).toLowerCase() }),
      z.strictObject({ field: z.enum(["user", "prompt_cache_key", "safety_identifier"]) }),
    ])
    .optional(),
  timeouts: z
    .strictObject({
      first_byte: timeSpan.prefault("60s"),
      idle: timeSpan.prefault("60s"),
      total: timeSpan.prefault("10m"),
    })
    .prefault({}),
  retries: z
    .strictObject({
      /** Attempts of one call altogether, fallbacks included. */
      attempts: z.int().min(1).max(16).default(3),
      /** Attempts beyond the first, as a share of calls; a few are always allowed. */
      budget: z.number().min(0).max(4).default(0.2),
      /** Another target is asked if the first byte takes longer; without it only `timeouts` decide. */
      latency_threshold: timeSpan.optional(),
      /** Ask another target where the answer is a refusal (`finish_reason` content_filter, or a `refusal`). */
      on_refusal: z.boolean().default(false),
    })
    .prefault({}),
  hedge: z
    .strictObject({
      /** A second target is asked if there is no first byte by then; `p95` takes the route's measured percentile. */
      after: z.union([timeSpan, z.enum(["p50", "p90", "p95", "p99"])]),
      /** Second attempts as a share of calls. */
      max_share: z.number().gt(0).max(1).default(0.02),
    })
    .optional(),
  /** For `prefix_aware`: the tokenizer whose tokens and blocks the targets cache. */
  prefix: z
    .strictObject({
      /** Folder with tokenizer.json and its chat template. */
      tokenizer: z.string().min(1),
      block_size: z.int().min(1).max(1024).default(16),
      /** Blocks that are remembered per target. */
      max_blocks: z.int().min(1).default(100_000),
      /** For `power_of_two`: calls that the target with the longest cached prefix may have more than the one with the fewest. */
      max_imbalance: z.int().min(0).default(10),
    })
    .optional(),
});

const lane = z.strictObject({
  /** Condition that a call must meet to belong to it. */
  when: condition,
  /** Sent as `priority` to targets that know it; lower runs first. */
  priority: z.int().default(0),
  /** Share of a target's `max_outstanding` that the lane may fill. */
  share: z.number().gt(0).max(1).default(1),
});

const configShape = {
  version: z.literal(1),
  listen: z
    .strictObject({ host: z.string().default("127.0.0.1"), port: z.int().min(0).max(65_535).default(8080) })
    .prefault({}),
  /** Without it there is no admin port. */
  admin: z
    .strictObject({
      host: z.string().default("127.0.0.1"),
      port: z.int().min(0).max(65_535),
      key: z.string().min(16, "expected a key of 16 characters or more"),
    })
    .optional(),
  targets: z.record(configName, target),
  routes: z.record(configName, route).default({}),
  lanes: z.record(configName, lane).default({}),
  limits: z
    .strictObject({
      max_body: byteSize.prefault("32MiB"),
      /** Bodies of all requests in progress together; requests beyond get 503. */
      max_body_memory: byteSize.prefault("256MiB"),
      max_answer: byteSize.prefault("64MiB"),
      max_event: byteSize.prefault("4MiB"),
      max_headers: byteSize.prefault("16KiB"),
      max_connections: z.int().min(0).default(0),
      body_timeout: timeSpan.prefault("30s"),
      headers_timeout: timeSpan.prefault("15s"),
      /** A client that reads nothing for so long is disconnected. */
      stall_timeout: timeSpan.prefault("60s"),
    })
    .refine(({ max_body, max_body_memory }) => max_body_memory >= max_body, {
      message: "must hold one body of max_body",
      path: ["max_body_memory"],
    })
    .prefault({}),
  answer_headers: z
    .strictObject({
      /** Names under which every answer carries its account: `x-octavo-cost`, `x-agentcc-cost`. */
      prefixes: z.array(z.enum(headerPrefixes)).min(1).default(["x-octavo-"]),
      /** Adds the account to the last event of a stream, as its field `octavo`. */
      in_last_event: z.boolean().default(true),
    })
    .prefault({}),
  store: storeSchema.prefault({}),
  /** `stdout`, a file, or `off`: one line of JSON per call. */
  access_log: z.string().min(1).default("stdout"),
  tracing: z
    .strictObject({
      otlp_endpoint: httpUrl,
      sample_ratio: z.number().min(0).max(1).default(1),
      headers: z.record(z.string(), z.string()).default({}),
    })
    .optional(),
  drain_timeout: timeSpan.prefault("30s"),
};

/** The sections of stages that can be configured, beside the gateway's own. */
const stageShape = Object.fromEntries(
  stageDefinitions.map(({ name, schema }) => [name, schema.optional()]),
) as Record<string, z.ZodType>;

const coreSchema = z.strictObject(configShape);

/** gateway.yaml. */
export const gatewaySchema = z.strictObject({ ...stageShape, ...configShape });

/** A gateway.yaml, read and checked, with the settings of its stages. */
export type GatewayConfig = z.output<typeof coreSchema> & { readonly stages: ReadonlyMap<string, unknown> };
export type GatewayTargetConfig = z.output<typeof target>;
export type RouteConfig = z.output<typeof route>;
export type LaneConfig = z.output<typeof lane>;
