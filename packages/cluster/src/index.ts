export { type AutoscalingConfig, autoscalingSchema } from "./autoscaling/autoscaling-config.js";
export {
  type ClusterConfig,
  loadClusterConfig,
  readClusterFile,
  type ServeFlag,
} from "./config/load-cluster-config.js";
export {
  checkFeasible,
  type RunningCluster,
  serveCluster,
  type ServeClusterOptions,
  specsOf,
} from "./operation/serve-cluster.js";
export { openDriver } from "./drivers/open-driver.js";
export type {
  ObservedReplica,
  ReplicaDriver,
  ReplicaSpec,
  WantedReplicas,
} from "./drivers/replica-driver.js";
export { sloSchema } from "./autoscaling/slo-policy.js";
export { simulatedDeployment } from "./simulation/simulated-deployment.js";
export { measureCosts } from "./simulation/measure-costs.js";
export { type ClusterSimulation, simulateCluster } from "./simulation/simulate-cluster.js";
export { generateCalls, type LoadPhase } from "./simulation/simulated-load.js";
export {
  findKnee,
  type Knee,
  type Objective,
  reportOf,
  type SimulationReport,
} from "./simulation/simulation-report.js";
export type { CallTimes } from "./simulation/simulated-replica.js";
export { clusterCosts, type ClusterCosts, type SimulatedCall } from "./simulation/step-costs.js";
