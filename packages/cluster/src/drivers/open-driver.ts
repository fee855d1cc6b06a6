import type { ClusterSections } from "../config/deployment-schema.js";
import { KubernetesDriver } from "./kubernetes/kubernetes-driver.js";
import { LocalDriver } from "./local/local-driver.js";
import { RayDriver } from "./ray/ray-driver.js";
import type { ReplicaDriver } from "./replica-driver.js";

export interface OpenDriverOptions {
  readonly config: ClusterSections["driver"];
  /** What stands before `serve` on this machine: Node and octavo's script. */
  readonly command: readonly string[];
  /** What starts a process that waits to be a replica on this machine. */
  readonly standby?: readonly string[] | undefined;
  readonly tell: (message: string) => void;
}

/** The driver that cluster.yaml names. */
export function openDriver({ config, command, standby, tell }: OpenDriverOptions): ReplicaDriver {
  switch (config.kind) {
    case "local":
      return new LocalDriver({
        config,
        command,
        standby: config.standby_process ? standby : undefined,
        tell,
      });
    case "ray":
      return new RayDriver({ config, tell });
    case "kubernetes":
      return new KubernetesDriver({ config, tell });
  }
}
