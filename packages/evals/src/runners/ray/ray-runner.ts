import { BatchJobsRunner, type BatchJobsOptions } from "../batch-jobs/batch-jobs-runner.js";
import { RayCluster, type RayClusterOptions } from "./ray-cluster.js";

export interface RayRunnerOptions extends RayClusterOptions, BatchJobsOptions {}

/**
 * Scores in jobs of a Ray cluster. Its nodes need Node, this package at one path and the shared folder; nothing of it is
 * Python.
 */
export class RayRunner extends BatchJobsRunner {
  /** @throws OctavoError `invalid_option` */
  constructor(options: RayRunnerOptions) {
    super(new RayCluster(options), options);
  }
}
