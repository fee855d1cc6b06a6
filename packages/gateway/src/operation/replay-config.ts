import type { GatewayConfig, GatewayTargetConfig, RouteConfig } from "../config/schema.js";
import type { CallerKey } from "../callers/key-file.js";
import type { CallersConfig } from "../callers/callers-stage.js";
import { type LimitsConfig, requestsBurst, tokensBurst } from "../limits/limits-stage.js";
import { storeSchema } from "../store/store-config.js";

export interface ReplayConfigOptions {
  /** What stands in for each target. */
  readonly urls: ReadonlyMap<string, string>;
  /** How many times as fast as it was recorded: every time of the configuration is so much shorter. */
  readonly speedup: number;
  /** Who makes the recorded calls. */
  readonly keys: readonly CallerKey[];
  /** File of the access log. */
  readonly accessLog: string;
}

/**
 * Settings that a replay shows, by JSON pointer: routes, lanes, limits, and what a target's section says of how it is chosen. Routing
 * by what is in prompts is not: the log does not have them.
 */
export function isShownInReplay(pointer: string): boolean {
  return (
    /^\/(?:routes\/[^/]+(?:\/(?:models|strategy|targets|fallbacks|timeouts|retries|hedge)(?:\/.+)?)?|lanes(?:\/.+)?|rate_limits\/rules\/.+|targets\/[^/]+\/(?:weight|max_outstanding|models|breaker)(?:\/.+)?)$/.test(
      pointer,
    ) &&
    !/\/(?:on_refusal|metadata|tags|has_tools|has_images|min_complexity|max_complexity)(?:\/|$)/.test(pointer)
  );
}

/**
 * A configuration whose targets are stand-ins on this machine: what decides where calls go and when they are given up is as it was,
 * with every time `speedup` times as short. Keys are the recording's; of the stages, limits stay. Nothing that was configured is asked,
 * written or counted elsewhere.
 */
export function replayConfig(config: GatewayConfig, options: ReplayConfigOptions): GatewayConfig {
  const { urls, speedup, keys, accessLog } = options;
  const { admin: _admin, tracing: _tracing, ...rest } = config;
  const limits = config.stages.get("rate_limits") as LimitsConfig | undefined;
  const stages = new Map<string, unknown>([
    ["callers", { keys: [...keys], anonymous: true } satisfies CallersConfig],
    ...(limits === undefined ? [] : [["rate_limits", fasterLimits(limits, speedup)] as const]),
  ]);
  return {
    ...rest,
    listen: { host: "127.0.0.1", port: 0 },
    targets: mapped(config.targets, (target, name) => standIn(target, urls.get(name) ?? "", speedup)),
    routes: mapped(config.routes, (route) => faster(route, speedup)),
    store: storeSchema.parse({}),
    access_log: accessLog,
    stages,
  };
}

function standIn(target: GatewayTargetConfig, url: string, speedup: number): GatewayTargetConfig {
  const { models, weight, max_outstanding, connections, shared_by_tenants, probe, breaker } = target;
  return {
    provider: "openai-compatible",
    url,
    headers: {},
    models,
    weight,
    ...(max_outstanding !== undefined && { max_outstanding }),
    connections,
    shared_by_tenants,
    probe: { ...probe, path: "off" },
    breaker: { ...breaker, window: breaker.window / speedup, open_for: breaker.open_for / speedup },
  };
}

function faster(route: RouteConfig, speedup: number): RouteConfig {
  const { timeouts, retries, hedge } = route;
  const { latency_threshold: threshold } = retries;
  return {
    ...route,
    timeouts: {
      first_byte: timeouts.first_byte / speedup,
      idle: timeouts.idle / speedup,
      total: timeouts.total / speedup,
    },
    retries: { ...retries, ...(threshold !== undefined && { latency_threshold: threshold / speedup }) },
    ...(hedge !== undefined && {
      hedge: { ...hedge, after: typeof hedge.after === "number" ? hedge.after / speedup : hedge.after },
    }),
  };
}

/** As much as before passes at once; more of it in a second of the replay. */
function fasterLimits(limits: LimitsConfig, speedup: number): LimitsConfig {
  return {
    ...limits,
    rules: limits.rules.map((rule) => {
      const { requests_per_minute: requests, tokens_per_minute: tokens } = rule;
      return {
        ...rule,
        ...(requests !== undefined && {
          requests_per_minute: requests * speedup,
          requests_burst: rule.requests_burst ?? requestsBurst(requests),
        }),
        ...(tokens !== undefined && {
          tokens_per_minute: tokens * speedup,
          tokens_burst: rule.tokens_burst ?? tokensBurst(tokens),
        }),
      };
    }),
  };
}

function mapped<T>(
  record: Readonly<Record<string, T>>,
  of: (value: T, name: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value, name)]));
}
