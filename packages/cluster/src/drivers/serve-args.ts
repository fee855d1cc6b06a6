import type { ReplicaSpec } from "./replica-driver.js";

/** Flags of `octavo serve` that are the same for every replica of a specification. Where it listens and its id are the driver's. */
export function serveArgs({ deployment, engineArgs }: ReplicaSpec, numThreads: number): readonly string[] {
  const { model_id, model_source } = deployment.model_loading_config;
  return [
    "serve",
    ...(model_source === undefined ? [] : [model_source]),
    "--served-model-name",
    model_id,
    "--drain-timeout",
    String(deployment.graceful_shutdown_timeout_s),
    ...(numThreads === 0 ? [] : ["--threads", String(numThreads)]),
    ...engineArgs,
  ];
}
