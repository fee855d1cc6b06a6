import { type Labels, Registry } from "@octavo/tracing/prometheus";
import type { LedgerEntry } from "../exchange/ledger-entry.js";
import type { LiveTarget } from "../targets/live-target.js";

const secondsBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const tokenBounds = [0, 16, 64, 256, 1024, 4096, 16_384, 65_536];

/** What the gateway counts, from ledger entries alone. Labels are names of gateway.yaml and codes: a client cannot add series. */
export class GatewayMetrics {
  readonly registry = Registry.create();
  readonly #known = new Map<string, Labels>();
  readonly #requests = this.registry.counter(
    "octavo_gateway_requests_total",
    "Calls that are over, by route, operation, status and error code.",
    ["route", "operation", "status", "code"],
  );
  readonly #attempts = this.registry.counter(
    "octavo_gateway_attempts_total",
    "Calls of targets, by target, reason and outcome.",
    ["target", "reason", "outcome"],
  );
  readonly #duration = this.registry.histogram(
    "octavo_gateway_request_duration_seconds",
    "From a call's arrival to its end.",
    secondsBounds,
    ["route"],
  );
  readonly #firstByte = this.registry.histogram(
    "octavo_gateway_time_to_first_byte_seconds",
    "From a call's arrival to the first byte of its answer.",
    secondsBounds,
    ["route"],
  );
  readonly #tokens = this.registry.counter("octavo_gateway_tokens_total", "Tokens, by target and kind.", [
    "target",
    "kind",
  ]);
  readonly #cost = this.registry.counter(
    "octavo_gateway_cost_dollars_total",
    "Cost at configured prices, by target.",
    ["target"],
  );
  readonly #cacheError = this.registry.histogram(
    "octavo_gateway_prefix_prediction_error_tokens",
    "Cached prompt tokens: the distance between what was predicted and what the target reported.",
    tokenBounds,
    ["target"],
  );
  readonly #inFlight = this.registry.gauge("octavo_gateway_requests_in_flight", "Calls under way.");
  readonly #outstanding = this.registry.gauge(
    "octavo_gateway_target_outstanding",
    "Calls under way, by target.",
    ["target"],
  );
  readonly #healthy = this.registry.gauge(
    "octavo_gateway_target_healthy",
    "1 while a target takes calls: probe, breaker and rest period allow it.",
    ["target"],
  );
  readonly #breaker = this.registry.gauge(
    "octavo_gateway_target_breaker",
    "The circuit breaker: 0 closed, 1 half open, 2 open.",
    ["target"],
  );
  readonly #reloads = this.registry.counter(
    "octavo_gateway_reloads_total",
    "Configurations read again, by outcome.",
    ["outcome"],
  );

  constructor(targets: () => Iterable<LiveTarget>, inFlight: () => number, nowMs: () => number) {
    this.registry.onCollect(() => {
      this.#inFlight.set(inFlight());
      this.#outstanding.clear();
      this.#healthy.clear();
      this.#breaker.clear();
      const now = nowMs();
      for (const target of targets()) {
        const labels = { target: target.name };
        this.#outstanding.set(target.outstanding, labels);
        this.#healthy.set(target.admits(now) ? 1 : 0, labels);
        this.#breaker.set({ closed: 0, "half-open": 1, open: 2 }[target.breaker.state(now)], labels);
      }
    });
  }

  reloaded(outcome: "ok" | "refused"): void {
    this.#reloads.add(1, { outcome });
  }

  /** An entry whose exchange is over. */
  record(entry: LedgerEntry): void {
    const { operation, status, errorCode = "ok", attempts } = entry;
    const route = this.#label("route", entry.route ?? "none");
    this.#requests.add(1, this.#requestLabels(entry.route ?? "none", operation, status, errorCode));
    this.#duration.observe((entry.durationMs ?? 0) / 1000, route);
    if (entry.firstByteMs !== undefined) this.#firstByte.observe(entry.firstByteMs / 1000, route);
    for (const { target, reason, outcome, usage, costUsd, predictedCachedTokens } of attempts) {
      const ofTarget = this.#label("target", target);
      this.#attempts.add(1, this.#attemptLabels(target, reason, outcome));
      if (costUsd > 0) this.#cost.add(costUsd, ofTarget);
      if (usage === undefined) continue;
      this.#tokens.add(usage.promptTokens, this.#tokenLabels(target, "prompt"));
      this.#tokens.add(usage.completionTokens, this.#tokenLabels(target, "completion"));
      if (usage.cachedTokens > 0) this.#tokens.add(usage.cachedTokens, this.#tokenLabels(target, "cached"));
      if (predictedCachedTokens !== undefined)
        this.#cacheError.observe(Math.abs(predictedCachedTokens - usage.cachedTokens), ofTarget);
    }
  }

  #label(name: string, value: string): Labels {
    const key = `${name}=${value}`;
    return this.#known.get(key) ?? this.#keep(key, { [name]: value });
  }

  #requestLabels(route: string, operation: string, status: number, code: string): Labels {
    const key = `${route}\0${operation}\0${status}\0${code}`;
    return this.#known.get(key) ?? this.#keep(key, { route, operation, status: String(status), code });
  }

  #attemptLabels(target: string, reason: string, outcome: string): Labels {
    const key = `${target}\0${reason}\0${outcome}`;
    return this.#known.get(key) ?? this.#keep(key, { target, reason, outcome });
  }

  #tokenLabels(target: string, kind: string): Labels {
    const key = `${target}\0${kind}`;
    return this.#known.get(key) ?? this.#keep(key, { target, kind });
  }

  /** Label sets are made once, and frozen; there are as many as names in gateway.yaml and codes allow. */
  #keep(key: string, labels: Labels): Labels {
    this.#known.set(key, Object.freeze(labels));
    return labels;
  }
}
