import { strategyNames } from "@octavo/gateway/parts";
import type { DeploymentConfig } from "../config/deployment-schema.js";
import type { ClusterSimulation } from "./simulate-cluster.js";
import type { ClusterCosts } from "./step-costs.js";

/** Limits of a step that replicas are given, in place of those that costs were measured under. */
const limits = ["max_num_seqs", "max_num_batched_tokens"] as const;

/** A deployment's section of cluster.yaml as the simulator takes it. */
export function simulatedDeployment(
  deployment: DeploymentConfig,
  costs: ClusterCosts,
): Omit<ClusterSimulation, "calls" | "seed"> {
  const { autoscaling, slo_policy, max_ongoing_requests, max_queued_requests, routing, engine_kwargs } =
    deployment;
  const strategy = strategyNames.find((name) => name === routing.strategy);
  const own = limits.flatMap((name) => {
    const value = engine_kwargs[name];
    return typeof value === "number" ? [[name, value] as const] : [];
  });
  return {
    costs: { ...costs, ...Object.fromEntries(own) },
    autoscaling,
    slo: slo_policy,
    maxOngoing: max_ongoing_requests,
    maxQueued: max_queued_requests,
    ...(strategy !== undefined && { strategy }),
  };
}
