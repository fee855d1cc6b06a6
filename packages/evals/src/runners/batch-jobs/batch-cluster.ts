/** Where a job of a cluster stands. */
export type JobStatus =
  /** Asked for, and waiting for a place to run. */
  | { readonly state: "pending"; readonly message: string }
  | { readonly state: "running" }
  | { readonly state: "succeeded" }
  /** It ended badly; trying again may help. */
  | { readonly state: "failed"; readonly message: string }
  /** Stopped from outside. */
  | { readonly state: "stopped"; readonly message: string }
  /** The cluster does not know it: it never did, or it forgot. */
  | { readonly state: "unknown" };

/**
 * Something that runs commands as jobs to completion, on machines that see the run's shared folder: Ray's Jobs API, and
 * what a Kubernetes cluster's Jobs would be. Every method rejects with an OctavoError: `runner_unavailable` when the cluster
 * does not answer.
 */
export interface BatchCluster {
  readonly name: string;
  /** Idempotent by `jobId`: a job that the cluster has already, in whatever state, is left as it is. */
  submit(jobId: string, command: readonly string[]): Promise<void>;
  status(jobId: string): Promise<JobStatus>;
  /** Asks for its end; what is over or unknown stays so. */
  stop(jobId: string): Promise<void>;
  close(): Promise<void>;
}
