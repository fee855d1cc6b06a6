import { asRecord, asString } from "@octavo/protocol";
import type { ReplicaSpec } from "../replica-driver.js";
import { serveArgs } from "../serve-args.js";
import { workingDir } from "./ray-serve-client.js";

const runtime = { working_dir: workingDir };

/** Where replicas listen; one for all deployments. */
export const directoryApplication = {
  name: "octavo-directory",
  route_prefix: "/octavo",
  import_path: "octavo_serve:directory",
  runtime_env: runtime,
};

/** Beyond the graceful shutdown: Octavo closes connections and frees the model, and Ray's actor ends. */
const closingS = 5;

export interface ReplicaStart {
  readonly command: readonly string[];
  readonly replicaKey: string;
  /** Another one makes Ray start over where it gave up. */
  readonly attempt: number;
}

/** One version of a deployment as an application of Serve. */
export function replicaApplication(
  spec: ReplicaSpec,
  numReplicas: number,
  { command, replicaKey, attempt }: ReplicaStart,
): object {
  const { deployment, version } = spec;
  const { num_cpus, memory } = deployment.ray_actor_options;
  return {
    name: `octavo-${deployment.name}-${version}`,
    route_prefix: `/octavo/${deployment.name}/${version}`,
    import_path: "octavo_serve:app",
    runtime_env: runtime,
    args: {
      name: deployment.name,
      version,
      directory: true,
      attempt,
      replica_key: replicaKey,
      command: [...command, ...serveArgs(spec, num_cpus)],
      startup_timeout_s: deployment.startup_timeout_s,
      health_check_timeout_s: deployment.health_check_timeout_s,
    },
    deployments: [
      {
        name: "Octavo",
        num_replicas: numReplicas,
        max_ongoing_requests: deployment.max_ongoing_requests,
        graceful_shutdown_wait_loop_s: 0.5,
        graceful_shutdown_timeout_s: deployment.graceful_shutdown_timeout_s + closingS,
        health_check_period_s: deployment.health_check_period_s,
        health_check_timeout_s: deployment.health_check_timeout_s,
        ray_actor_options: { num_cpus, ...(memory !== undefined && { memory }) },
      },
    ],
  };
}

/** Which version of which deployment an application runs. */
export interface ApplicationOwner {
  readonly deployment: string;
  readonly version: string;
  readonly replicaKey: string | undefined;
}

/** Undefined where an application is not one of Octavo's. */
export function versionOf(config: Readonly<Record<string, unknown>>): ApplicationOwner | undefined {
  const args = asRecord(config["args"]);
  const [deployment, version] = [asString(args["name"]), asString(args["version"])];
  if (config["import_path"] !== "octavo_serve:app" || deployment === undefined || version === undefined)
    return undefined;
  return { deployment, version, replicaKey: asString(args["replica_key"]) };
}
