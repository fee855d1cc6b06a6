import type { AutoscalingConfig } from "./autoscaling-config.js";

/** Since when the rule has wanted the same direction without a break, so that a short burst does not scale. */
export interface PendingScale {
  readonly direction: "up" | "down";
  readonly sinceS: number;
}

export interface RayRuleInput {
  readonly config: AutoscalingConfig;
  /** Replicas that run. */
  readonly numRunning: number;
  /** Replicas that were wanted last. */
  readonly target: number;
  /** Running and queued, over the look-back window. */
  readonly totalRequests: number;
  readonly nowS: number;
  readonly pending: PendingScale | undefined;
}

export interface RayDecision {
  readonly target: number;
  readonly pending: PendingScale | undefined;
}

/** Differences of large times are a little less than they should be. */
const delayToleranceS = 1e-6;

/**
 * Ray Serve's default policy as published and as ray 2.60 runs it: replicas in proportion to ongoing requests per target, damped by
 * the factors, held back by the delays, clipped. From zero replicas there is no delay.
 */
export function rayDecision(input: RayRuleInput): RayDecision {
  const { config, numRunning, target, totalRequests, pending } = input;
  if (numRunning === 0 && totalRequests > 0) {
    const first = Math.max(Math.ceil(config.upscaling_factor), target);
    return { target: clipped(first, config), pending };
  }
  const scaled = scaledBy(config, numRunning, desiredReplicas(input));
  if (numRunning === 0 && scaled > 0) return { target: clipped(scaled, config), pending };
  const decision = delayed(Math.max(0, scaled), input);
  return { ...decision, target: clipped(decision.target, config) };
}

function desiredReplicas({ config, numRunning, target, totalRequests }: RayRuleInput): number {
  // in this order, so that rounding is Ray's
  return numRunning === 0
    ? target
    : numRunning * (totalRequests / (config.target_ongoing_requests * numRunning));
}

function scaledBy(config: AutoscalingConfig, numRunning: number, desired: number): number {
  if (numRunning === 0) return Math.ceil(desired);
  const delta = desired - numRunning;
  const factor = delta > 0 ? config.upscaling_factor : config.downscaling_factor;
  const scaled = Math.ceil(numRunning + factor * delta);
  // a small factor must not keep it from ever scaling down
  return Math.ceil(desired) < numRunning && scaled === numRunning ? scaled - 1 : scaled;
}

function delayed(desired: number, { config, target, nowS, pending }: RayRuleInput): RayDecision {
  if (desired === target) return { target, pending: undefined };
  const direction = desired > target ? "up" : "down";
  const sinceS = pending?.direction === direction ? pending.sinceS : nowS;
  const toZero = direction === "down" && target === 1;
  const delayS =
    direction === "up"
      ? config.upscale_delay_s
      : toZero
        ? (config.downscale_to_zero_delay_s ?? config.downscale_delay_s)
        : config.downscale_delay_s;
  if (nowS - sinceS + delayToleranceS < delayS) return { target, pending: { direction, sinceS } };
  // zero is reached from one alone
  return { target: direction === "down" && !toZero ? Math.max(1, desired) : desired, pending: undefined };
}

export function clipped(replicas: number, config: AutoscalingConfig): number {
  return Math.max(config.min_replicas, Math.min(config.max_replicas, replicas));
}
