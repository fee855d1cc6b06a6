import { asObject } from "@octavo/protocol";
import type { ConfigPatch } from "./config-patch.js";
import type { FeedEntry } from "./feed-state.js";

/** What of a cluster decides which setting of a deployment is changed. */
export type DeploymentEvidence = Pick<FeedEntry, "cause"> & Partial<Pick<FeedEntry, "replicas">>;

/** Causes that more replicas answer: requests waited, or ran beside too many. */
const crowding: ReadonlySet<string> = new Set([
  "queue",
  "not_scheduled",
  "preemption",
  "batch_growth",
  "deadline_exceeded",
]);

/** As cluster.yaml has it by default. */
const usualUpscaleDelayS = 30;

/** The change of a deployment's section of cluster.yaml to try first. */
export function proposeDeploymentFix(
  { cause, replicas = [] }: DeploymentEvidence,
  section: unknown,
): ConfigPatch | undefined {
  const deployment = asObject(section) ?? {};
  const set = (name: string, value: number, why: string): ConfigPatch => ({
    of: "deployment",
    set: { [name]: value },
    why,
  });
  const queued = deployment["max_queued_requests"];
  if (cause === "queue_full" && typeof queued === "number" && queued >= 0)
    return set(
      "/max_queued_requests",
      Math.max(64, 4 * queued),
      "calls were refused because too many waited",
    );
  if (!crowding.has(cause)) return undefined;
  const scaling = asObject(deployment["autoscaling_config"]);
  if (scaling === undefined) {
    const fixed = deployment["num_replicas"] ?? 1;
    return typeof fixed === "number"
      ? set("/num_replicas", Math.max(1, 2 * fixed), "the replicas had more to do than they can")
      : undefined;
  }
  const most = Number(scaling["max_replicas"] ?? 1);
  const delayS = Number(scaling["upscale_delay_s"] ?? usualUpscaleDelayS);
  if (replicas.length < most && delayS >= 1)
    return set(
      "/autoscaling_config/upscale_delay_s",
      Math.floor(delayS / 10),
      `${replicas.length} of ${most} replicas served: more came too late`,
    );
  return set(
    "/autoscaling_config/max_replicas",
    2 * most,
    "all replicas that are allowed had too much to do",
  );
}
