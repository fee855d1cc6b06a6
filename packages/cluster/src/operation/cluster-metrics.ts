import type { TargetPool } from "@octavo/gateway/parts";
import type { Registry } from "@octavo/tracing/prometheus";
import type { DeploymentController } from "../controller/deployment-controller.js";

/** What the cluster counts, under Ray Serve's names where it has them. */
export function registerClusterMetrics(
  registry: Registry,
  controllers: readonly DeploymentController[],
  pools: ReadonlyMap<string, TargetPool>,
  droppedLogLines: () => number,
): void {
  const { target, total, queued, processing, healthy, reachable } = registry.gauges({
    target: ["ray_serve_autoscaling_target_replicas", "Replicas wanted.", "deployment"],
    total: ["ray_serve_autoscaling_total_requests", "Requests queued and running.", "deployment"],
    queued: ["ray_serve_deployment_queued_queries", "Requests that wait for a replica.", "deployment"],
    processing: ["ray_serve_replica_processing_queries", "Requests at a replica.", "deployment", "replica"],
    healthy: [
      "ray_serve_deployment_replica_healthy",
      "1 for a replica that takes requests.",
      "deployment",
      "replica",
    ],
    reachable: [
      "octavo:cluster_driver_reachable",
      "0 while what runs the replicas does not answer.",
      "deployment",
    ],
  });
  const { skew, mhz, info, dropped } = registry.gauges({
    skew: [
      "octavo:cluster_replica_clock_skew_seconds",
      "A replica's wall clock less the cluster's.",
      "replica",
    ],
    mhz: ["octavo:cluster_replica_cpu_mhz", "A replica's processors when it was admitted.", "replica"],
    info: [
      "octavo:cluster_replica_info",
      "1 for a replica with what it is.",
      "replica",
      "version",
      "artifact_digest",
      "kernel_path",
      "fingerprint",
    ],
    dropped: ["octavo:cluster_log_lines_dropped", "Lines of replicas that could not be written."],
  });
  registry.onCollect(() => {
    for (const gauge of [processing, healthy, skew, mhz, info]) gauge.clear();
    dropped.set(droppedLogLines());
    for (const controller of controllers) {
      const deployment = controller.name;
      const pool = pools.get(deployment);
      if (pool === undefined) continue;
      target.set(controller.target, { deployment });
      total.set(pool.numQueued + pool.numRunning, { deployment });
      queued.set(pool.numQueued, { deployment });
      reachable.set(controller.isReachable ? 1 : 0, { deployment });
      for (const { id } of controller.replicas) {
        const member = pool.member(id);
        processing.set(member?.outstanding ?? 0, { deployment, replica: id });
        healthy.set(member === undefined ? 0 : 1, { deployment, replica: id });
        const identity = controller.identityOf(id);
        if (identity === undefined) continue;
        skew.set(identity.clockSkewMs / 1000, { replica: id });
        if (identity.cpuMhz !== undefined) mhz.set(identity.cpuMhz, { replica: id });
        info.set(1, {
          replica: id,
          version: identity.version,
          artifact_digest: identity.artifactDigest,
          kernel_path: identity.kernelPath,
          fingerprint: identity.fingerprint,
        });
      }
    }
  });
}
