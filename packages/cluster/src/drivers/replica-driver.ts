import type { DeploymentConfig } from "../config/deployment-schema.js";

/** What a deployment's replicas are started from. */
export interface ReplicaSpec {
  readonly deployment: DeploymentConfig;
  /** Flags of `octavo serve`. */
  readonly engineArgs: readonly string[];
  /** Changes whenever replicas must be replaced for the specification to hold. */
  readonly version: string;
}

export type ReplicaState = "starting" | "running" | "stopping";

/** A replica as its driver sees it: that it runs says nothing of whether it answers. */
export interface ObservedReplica {
  /** Never given twice. */
  readonly id: string;
  readonly version: string;
  readonly state: ReplicaState;
  /** Where it listens; undefined while that is not known. */
  readonly url: string | undefined;
}

/** What the controller wants of a deployment, and what it knows that the driver cannot. */
export interface WantedReplicas {
  readonly spec: ReplicaSpec;
  readonly count: number;
  /** Admitted: healthy, and alike. */
  readonly ready: ReadonlySet<string>;
  /** To be replaced, and why: they died inside, never became healthy, or differ. */
  readonly rejected: ReadonlyMap<string, string>;
}

/**
 * Where replicas run. The controller says how many and which are good; a driver starts, places, restarts and stops them. Every driver
 * passes the suite in `testing/driver-conformance.ts`.
 */
export interface ReplicaDriver {
  readonly kind: string;
  /** By which replicas let the cluster read and fill their prefix caches; undefined where they have none. */
  readonly replicaKey: string | undefined;
  /** Lines of replicas that could not be written; only where the driver writes them. */
  readonly droppedLogLines?: number;
  /** What cannot be met here, in words, before anything is started; empty where all can. */
  problems(specs: readonly ReplicaSpec[]): Promise<readonly string[]>;
  /**
   * Brings a deployment nearer to what is wanted, and is called again and again: new versions replace old ones without going below
   * `count` ready replicas, rejected ones are replaced. Resolves once it is under way. Throws `runner_unavailable` where what runs
   * replicas cannot be reached; those that run go on.
   */
  apply(wanted: WantedReplicas): Promise<void>;
  /** Replicas as they are now. Throws `runner_unavailable` as `apply` does. */
  observe(deployment: string): Promise<readonly ObservedReplica[]>;
  /** Calls back when a replica came, went or changed; before one is asked to stop, and at once after one died. */
  onChange(listener: (deployment: string) => void): void;
  /** Stops what it started, as gracefully as the deployments say. */
  close(): Promise<void>;
}
