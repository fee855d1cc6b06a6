import { fileURLToPath } from "node:url";
import { deploymentSchema } from "../config/deployment-schema.js";
import type { ReplicaSpec } from "../drivers/replica-driver.js";

/** What stands before `serve` for replicas without a model. */
export const fakeReplicaCommand = [
  process.execPath,
  fileURLToPath(new URL("fake-replica.js", import.meta.url)),
];

/** What starts one that waits for its arguments. */
export const fakeStandbyCommand = [
  process.execPath,
  fileURLToPath(new URL("fake-standby.js", import.meta.url)),
];

export interface SpecOptions {
  readonly version?: string;
  readonly engineArgs?: readonly string[];
  /** Fields of the deployment, as in cluster.yaml. */
  readonly fields?: object;
}

/** A deployment `fake` whose replicas take no cores of their own. */
export function fakeSpec({ version = "one", engineArgs = [], fields = {} }: SpecOptions = {}): ReplicaSpec {
  const deployment = deploymentSchema.parse({
    name: "fake",
    model_loading_config: { model_id: "m" },
    graceful_shutdown_timeout_s: 5,
    ray_actor_options: { num_cpus: 0 },
    ...fields,
  });
  return { deployment, engineArgs, version };
}

/** What `holds` gives once it is not false. */
export async function until<T>(holds: () => T | Promise<T>): Promise<Exclude<T, false>> {
  for (;;) {
    const found = await holds();
    if (found !== false) return found as Exclude<T, false>;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
