export {
  ClusterBootstrap,
  type Bootstrapped,
  type ClusterSums,
  type Interval,
  minimumClusters,
  type Statistic,
} from "./bootstrap.js";
export { normalCdf, normalQuantile } from "./normal.js";
export { SeededRandom } from "./random.js";
export { holm, signTest } from "./sign-test.js";
