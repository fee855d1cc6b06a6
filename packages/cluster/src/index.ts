export { type AutoscalingConfig, autoscalingSchema } from "./autoscaling/autoscaling-config.js";
export { type ClusterConfig, readClusterFile, type ServeFlag } from "./config/load-cluster-config.js";
export {
  checkFeasible,
  type RunningCluster,
  serveCluster,
  type ServeClusterOptions,
  specsOf,
} from "./operation/serve-cluster.js";
export { LocalDriver } from "./drivers/local/local-driver.js";
export type {
  ObservedReplica,
  ReplicaDriver,
  ReplicaSpec,
  WantedReplicas,
} from "./drivers/replica-driver.js";
