import { isDeepStrictEqual } from "node:util";
import { OctavoError } from "@octavo/protocol";
import type { TargetPool } from "@octavo/gateway/parts";
import { DeploymentScaler } from "../autoscaling/deployment-scaler.js";
import { targetConfigOf } from "../config/deployment-schema.js";
import type { ObservedReplica, ReplicaDriver, ReplicaSpec } from "../drivers/replica-driver.js";
import { ManagedReplica } from "./managed-replica.js";
import { warmPrefixes } from "./prefix-warm-up.js";
import { differences, type ReplicaIdentity } from "./replica-identity.js";

export interface DeploymentControllerOptions {
  readonly spec: ReplicaSpec;
  readonly driver: ReplicaDriver;
  readonly pool: TargetPool;
  readonly tell: (message: string) => void;
}

/** Ray Serve's control loop. */
const loopMs = 100;
/** Drivers that are far away are asked less often. */
const unreachableMs = 1000;

/** One deployment: compares what is wanted with what there is, and acts, ten times a second and whenever something changed. */
export class DeploymentController {
  readonly name: string;
  readonly #driver: ReplicaDriver;
  readonly #pool: TargetPool;
  readonly #tell: (message: string) => void;
  readonly #managed = new Map<string, ManagedReplica>();
  readonly #rejected = new Map<string, string>();
  readonly #reference = new Map<string, ReplicaIdentity>();
  readonly #leaving = new Set<Promise<void>>();
  #spec: ReplicaSpec;
  #scaler: DeploymentScaler;
  #observed: readonly ObservedReplica[] = [];
  #isReachable = true;
  #isRunning = false;
  #isDirty = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ spec, driver, pool, tell }: DeploymentControllerOptions) {
    this.name = spec.deployment.name;
    this.#spec = spec;
    this.#driver = driver;
    this.#pool = pool;
    this.#tell = tell;
    this.#scaler = new DeploymentScaler(spec.deployment.autoscaling, spec.deployment.slo_policy);
    driver.onChange((deployment) => {
      if (deployment === this.name) void this.#onChange();
    });
    this.#step();
  }

  get target(): number {
    return this.#scaler.target;
  }

  get isReachable(): boolean {
    return this.#isReachable;
  }

  get replicas(): readonly ObservedReplica[] {
    return this.#observed;
  }

  get numReady(): number {
    return [...this.#pool.members].length;
  }

  /** Why replicas were not admitted, or were taken out. */
  get rejected(): ReadonlyMap<string, string> {
    return this.#rejected;
  }

  identityOf(id: string): ReplicaIdentity | undefined {
    return this.#managed.get(id)?.identity;
  }

  /** Another specification: replicas of another version are replaced one by one. */
  update(spec: ReplicaSpec): void {
    const { autoscaling, slo_policy, max_queued_requests } = spec.deployment;
    if (!isDeepStrictEqual([autoscaling, slo_policy], [this.#scaler.config, this.#scaler.slo]))
      this.#scaler = new DeploymentScaler(autoscaling, slo_policy, this.#scaler.target);
    this.#spec = spec;
    this.#pool.maxQueued = max_queued_requests;
    this.#step();
  }

  /** Asks every replica again who it is; those that differ by now are replaced. Resolves with what each said. */
  async verify(): Promise<readonly { readonly id: string; readonly difference: string | undefined }[]> {
    return Promise.all(
      [...this.#managed.values()].map(async (replica) => {
        const difference = await replica.identify().then(
          (identity) => this.#judge(replica, identity),
          (thrown: unknown) => OctavoError.from(thrown).message,
        );
        if (difference !== undefined) this.#reject(replica, difference);
        return { id: replica.id, difference };
      }),
    );
  }

  /** Stops following; the driver stops the replicas. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const replica of this.#managed.values()) replica.close();
    await this.#pool.close();
    await Promise.all(this.#leaving);
  }

  /** A replica that goes takes no more calls from this moment on, whatever else is under way. */
  async #onChange(): Promise<void> {
    try {
      const observed = await this.#driver.observe(this.name);
      if (!this.#isClosed) this.#follow(observed);
    } catch {
      // the next step says so
    }
    this.#step();
  }

  /** One at a time; what changes meanwhile is looked at right after. */
  #step(): void {
    if (this.#isClosed) return;
    if (this.#isRunning) {
      this.#isDirty = true;
      return;
    }
    this.#isRunning = true;
    this.#isDirty = false;
    clearTimeout(this.#timer);
    this.#reconcile()
      .then(
        () => this.#noteReachable(undefined),
        (thrown: unknown) => this.#noteReachable(OctavoError.from(thrown)),
      )
      .finally(() => {
        this.#isRunning = false;
        if (this.#isDirty) this.#step();
        else if (!this.#isClosed)
          this.#timer = setTimeout(() => this.#step(), this.#isReachable ? loopMs : unreachableMs);
      });
  }

  async #reconcile(): Promise<void> {
    this.#scale();
    this.#follow(await this.#driver.observe(this.name));
    if (this.#isClosed) return;
    const ready = new Set(Array.from(this.#pool.members, ({ name }) => name));
    await this.#driver.apply({
      spec: this.#spec,
      count: this.#scaler.target,
      ready,
      rejected: this.#rejected,
    });
  }

  #scale(): void {
    const before = this.#scaler.target;
    const ongoing = this.#pool.numQueued + this.#pool.numRunning;
    const { tokens } = this.#pool;
    const nowS = performance.now() / 1000;
    const target = this.#scaler.decide({
      nowS,
      epochMs: Date.now(),
      numReady: this.numReady,
      ongoing,
      tokens,
    });
    if (target !== before) this.#tell(`${this.name}: ${before} → ${target} replicas for ${ongoing} requests`);
  }

  /** Replicas that listen are met, those that are gone or about to go take no more calls. */
  #follow(observed: readonly ObservedReplica[]): void {
    this.#observed = observed;
    const states = new Map(observed.map((replica) => [replica.id, replica]));
    for (const { id, url, state, version } of observed)
      if (state === "running" && url !== undefined && !this.#managed.has(id) && !this.#rejected.has(id))
        this.#managed.set(
          id,
          new ManagedReplica(
            id,
            url,
            { ...this.#spec, version },
            {
              onIdentified: (replica, identity) => {
                this.#admit(replica, identity).catch((thrown: unknown) =>
                  this.#reject(replica, OctavoError.from(thrown).message),
                );
              },
              onRejected: (replica, reason) => this.#reject(replica, reason),
            },
          ),
        );
    for (const replica of this.#managed.values()) {
      const state = states.get(replica.id)?.state;
      if (state === "running") continue;
      this.#managed.delete(replica.id);
      replica.close();
      this.#removeMember(replica.id, state === "stopping" ? "drain" : "cut");
    }
    for (const id of this.#rejected.keys()) if (!states.has(id)) this.#rejected.delete(id);
    const versions = new Set(observed.map(({ version }) => version));
    for (const version of this.#reference.keys())
      if (version !== this.#spec.version && !versions.has(version)) this.#reference.delete(version);
  }

  async #admit(replica: ManagedReplica, identity: ReplicaIdentity): Promise<void> {
    const difference = this.#judge(replica, identity);
    if (difference !== undefined) {
      this.#reject(replica, difference);
      return;
    }
    const config = targetConfigOf(this.#spec.deployment, replica.url);
    if (config === undefined) throw new OctavoError("internal_error", "a replica has no settings");
    const numTokens = await this.#warmUp(replica);
    // it may have gone meanwhile
    if (this.#isClosed || this.#managed.get(replica.id) !== replica) return;
    this.#pool.add(replica.id, config);
    const warmed = numTokens > 0 ? `, ${numTokens} tokens of hot prefixes cached` : "";
    this.#tell(`${replica.id} is ready at ${replica.url}, fingerprint ${identity.fingerprint}${warmed}`);
    this.#step();
  }

  /** What requests found most in the caches of replicas of its version is in its cache too, before it takes any. */
  async #warmUp(replica: ManagedReplica): Promise<number> {
    const { replicaKey: key } = this.#driver;
    const timeoutMs = this.#spec.deployment.prefix_warm_up_timeout_s * 1000;
    const others = Array.from(this.#pool.members, ({ name }) => this.#managed.get(name)).flatMap((other) =>
      other?.version === replica.version ? [other.url] : [],
    );
    if (key === undefined || timeoutMs === 0 || others.length === 0) return 0;
    return warmPrefixes({ url: replica.url, others, key, timeoutMs });
  }

  /** Why it is not like the others of its version; undefined where it is. */
  #judge({ version }: ManagedReplica, identity: ReplicaIdentity): string | undefined {
    const { expected_fingerprint: expected } = this.#spec.deployment;
    if (expected !== undefined && identity.fingerprint !== expected)
      return `logits fingerprint ${identity.fingerprint}, expected ${expected}`;
    const reference = this.#reference.get(version);
    if (reference === undefined) {
      this.#reference.set(version, identity);
      return undefined;
    }
    const found = differences(identity, reference);
    return found.length === 0 ? undefined : found.join("; ");
  }

  #reject(replica: ManagedReplica, reason: string): void {
    replica.close();
    this.#rejected.set(replica.id, reason);
    this.#tell(`${replica.id} is not admitted: ${reason}`);
    this.#removeMember(replica.id, "cut");
    this.#step();
  }

  #removeMember(id: string, how: "drain" | "cut"): void {
    const left = this.#pool.remove(id, how).finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }

  #noteReachable(failure: OctavoError | undefined): void {
    const isReachable = failure === undefined;
    if (isReachable !== this.#isReachable)
      this.#tell(
        isReachable
          ? `${this.name}: what runs the replicas answers again`
          : `${this.name}: ${failure.message}; serving goes on with the replicas known last`,
      );
    this.#isReachable = isReachable;
  }
}
