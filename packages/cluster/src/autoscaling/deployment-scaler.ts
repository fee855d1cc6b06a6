import type { AutoscalingConfig } from "./autoscaling-config.js";
import { OngoingWindow } from "./ongoing-window.js";
import { clipped, type PendingScale, rayDecision } from "./ray-rule.js";
import { type SloConfig, SloPolicy, type TokenCounts } from "./slo-policy.js";

/** A deployment at one moment, live or simulated. */
export interface DeploymentLoad {
  readonly nowS: number;
  /** Milliseconds since 1970. */
  readonly epochMs: number;
  readonly numReady: number;
  /** Requests, queued and running. */
  readonly ongoing: number;
  readonly tokens: TokenCounts;
}

/** How many replicas a deployment is to have, by Ray's rule or by its objective. Called ten times a second; keeps what the rules remember. */
export class DeploymentScaler {
  readonly config: AutoscalingConfig;
  readonly slo: SloConfig | undefined;
  readonly #window: OngoingWindow;
  readonly #policy: SloPolicy | undefined;
  #pending: PendingScale | undefined;
  #target: number;

  /** `target`: of the scaler that this one replaces. */
  constructor(config: AutoscalingConfig, slo: SloConfig | undefined, target?: number) {
    this.config = config;
    this.slo = slo;
    this.#window = new OngoingWindow(config);
    this.#policy = slo === undefined ? undefined : new SloPolicy();
    this.#target = clipped(target ?? config.initial_replicas ?? config.min_replicas, config);
  }

  get target(): number {
    return this.#target;
  }

  decide(load: DeploymentLoad): number {
    this.#target =
      this.#policy === undefined ? this.#byRaysRule(load) : this.#byObjective(load, this.#policy);
    return this.#target;
  }

  #byObjective({ nowS, epochMs, numReady, tokens }: DeploymentLoad, policy: SloPolicy): number {
    if (this.slo === undefined) return this.#target;
    const { min_replicas: minReplicas, max_replicas: maxReplicas } = this.config;
    const target = this.#target;
    return policy.decide({
      config: this.slo,
      minReplicas,
      maxReplicas,
      numReady,
      target,
      tokens,
      nowS,
      epochMs,
    });
  }

  #byRaysRule({ nowS, numReady, ongoing }: DeploymentLoad): number {
    // the first request after none is not made to wait for the next report
    if (numReady === 0 && this.#target === 0 && ongoing > 0) this.#window.report(nowS, ongoing);
    else this.#window.observe(nowS, ongoing);
    const decision = rayDecision({
      config: this.config,
      numRunning: numReady,
      target: this.#target,
      totalRequests: numReady === 0 ? ongoing : this.#window.total(nowS),
      nowS,
      pending: this.#pending,
    });
    this.#pending = decision.pending;
    return decision.target;
  }
}
