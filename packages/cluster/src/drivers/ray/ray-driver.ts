import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { asRecord, OctavoError } from "@octavo/protocol";
import type { RayDriverConfig } from "../../config/deployment-schema.js";
import type {
  ObservedReplica,
  ReplicaDriver,
  ReplicaSpec,
  ReplicaState,
  WantedReplicas,
} from "../replica-driver.js";
import { Retries } from "../retries.js";
import { Snapshots } from "../snapshots.js";
import { planRay } from "./plan-ray.js";
import {
  type ApplicationOwner,
  directoryApplication,
  replicaApplication,
  versionOf,
} from "./ray-applications.js";
import { RayServeClient, type RayReplicaDetails, type RayServeState } from "./ray-serve-client.js";

export interface RayDriverOptions {
  readonly config: RayDriverConfig;
  readonly tell: (message: string) => void;
}

interface Version extends ApplicationOwner {
  readonly application: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly numReplicas: number;
  /** Why Ray gave up; undefined where it did not. */
  readonly failure: string | undefined;
}

interface Snapshot {
  readonly state: RayServeState;
  readonly versions: readonly Version[];
  readonly replicas: ReadonlyMap<string, readonly ObservedReplica[]>;
  readonly replicaKey: string;
}

/** Replicas as actors of Ray Serve, on whatever nodes Ray has: Ray places and restarts them, this says how many of which version. */
export class RayDriver implements ReplicaDriver {
  readonly kind = "ray";
  readonly #options: RayDriverOptions;
  readonly #client: RayServeClient;
  readonly #wanted = new Map<string, WantedReplicas>();
  readonly #urls = new Map<string, string>();
  /** Ray says of an application that it deletes neither how it was configured nor, thereby, whose it is. */
  readonly #applications = new Map<string, ApplicationOwner>();
  readonly #pids = new Map<string, number>();
  /** Drawn at the first look, unless replicas run then that have one. */
  #replicaKey: string | undefined;
  readonly #retries: Retries;
  readonly #snapshots: Snapshots<Snapshot>;
  #putting: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: RayDriverOptions) {
    this.#options = options;
    const { dashboard, proxy, poll_interval_s } = options.config;
    this.#client = new RayServeClient({ dashboard, proxy });
    this.#retries = new Retries(options.tell);
    this.#snapshots = new Snapshots({
      periodMs: poll_interval_s * 1000,
      take: () => this.#take(),
      partsOf: ({ replicas }) => replicas,
    });
  }

  get replicaKey(): string | undefined {
    return this.#replicaKey;
  }

  async problems(specs: readonly ReplicaSpec[]): Promise<readonly string[]> {
    const found: string[] = [];
    try {
      await this.#client.state();
      const nodes = await this.#nodes();
      for (const [resource, setting] of [
        ["CPU", "num_cpus"],
        ["memory", "memory"],
      ] as const) {
        const has = nodes.map((node) => Number(node[resource] ?? 0));
        const total = has.reduce((sum, one) => sum + one, 0);
        let most = 0;
        for (const { deployment } of specs) {
          const each = deployment.ray_actor_options[setting] ?? 0;
          most += each * deployment.autoscaling.max_replicas;
          if (each > Math.max(0, ...has))
            found.push(
              `${deployment.name}: no node of Ray has ${each} ${resource}; the largest has ${Math.max(0, ...has)}`,
            );
        }
        if (most > total)
          found.push(
            `all replicas at their most take ${most} ${resource} (max_replicas × ${setting}); Ray has ${total}`,
          );
      }
    } catch (thrown) {
      found.push(OctavoError.from(thrown).message);
    }
    return found;
  }

  /** A dashboard that has just started knows no node for some seconds. */
  async #nodes(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    for (let attempt = 0; attempt < 30; attempt += 1) {
      const nodes = await this.#client.nodes();
      if (nodes.length > 0) return nodes;
      await sleep(1000);
    }
    throw new OctavoError("runner_unavailable", "Ray has no node that is alive");
  }

  async apply(wanted: WantedReplicas): Promise<void> {
    const { name } = wanted.spec.deployment;
    this.#wanted.set(name, wanted);
    if (this.#isClosed) return;
    await this.#putting;
    const { state, versions, replicas, replicaKey } = await this.#snapshots.latest();
    const current = versions.filter(({ deployment }) => deployment === name);
    const planned = planRay(
      wanted,
      replicas.get(name) ?? [],
      new Map(current.map(({ version, numReplicas }) => [version, numReplicas])),
    );
    const failed = current.find(
      ({ version, failure }) => version === wanted.spec.version && failure !== undefined,
    );
    const isRetry = failed?.failure !== undefined && this.#retries.isDue(failed.application, failed.failure);
    if (
      !isRetry &&
      current.length === planned.size &&
      current.every(({ version, numReplicas }) => planned.get(version) === numReplicas)
    )
      return;
    const own = [...planned].map(([version, number]) => {
      const before = current.find((one) => one.version === version);
      // an old version stays as it was deployed; only its number changes
      return version === wanted.spec.version
        ? replicaApplication(wanted.spec, number, {
            command: this.#options.config.command,
            replicaKey,
            attempt: this.#retries.count(before?.application),
          })
        : { ...before?.config, deployments: scaled(before?.config["deployments"], number) };
    });
    const others = versions.filter(({ deployment }) => deployment !== name).map(({ config }) => config);
    await this.#put(state, [...others, ...own]);
  }

  async observe(deployment: string): Promise<readonly ObservedReplica[]> {
    return (await this.#snapshots.latest()).replicas.get(deployment) ?? [];
  }

  onChange(listener: (deployment: string) => void): void {
    this.#snapshots.onChange(listener);
  }

  /** Of the actor of a replica; for tests that kill it. */
  pidOf(id: string): number | undefined {
    return this.#pids.get(id);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#putting?.catch(() => undefined);
    const isOurs = ({ deployment }: Version): boolean => this.#wanted.has(deployment);
    try {
      const { state, versions } = await this.#take();
      if (!versions.some(isOurs)) return;
      await this.#put(
        state,
        versions.filter((one) => !isOurs(one)).map(({ config }) => config),
      );
      const graces = [...this.#wanted.values()].map(
        ({ spec }) => spec.deployment.graceful_shutdown_timeout_s,
      );
      const lastMs = performance.now() + (Math.max(...graces) + 15) * 1000;
      const isLeft = async (): Promise<boolean> => {
        const { replicas } = await this.#take();
        return [...this.#wanted.keys()].some((name) => (replicas.get(name) ?? []).length > 0);
      };
      while (performance.now() < lastMs && (await isLeft())) await sleep(200);
    } catch (thrown) {
      this.#options.tell(`replicas may still run: ${OctavoError.from(thrown).message}`);
    }
  }

  /** Deploys applications of replicas; what others deployed over the same API stays. */
  async #put(state: RayServeState, applications: readonly object[]): Promise<void> {
    const { dashboard, http_port } = this.#options.config;
    const foreign = Object.entries(state.applications).flatMap(([name, { deployed_app_config: config }]) =>
      config === undefined || versionOf(config) !== undefined || name === directoryApplication.name
        ? []
        : [config],
    );
    const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(new URL(dashboard).hostname);
    this.#putting = this.#client
      .put({
        proxy_location: "HeadOnly",
        http_options: { host: isLocal ? "127.0.0.1" : "0.0.0.0", port: http_port },
        applications: [
          ...foreign,
          ...(applications.length === 0 ? [] : [directoryApplication]),
          ...applications,
        ],
      })
      .finally(() => {
        this.#putting = undefined;
        this.#snapshots.forget();
      });
    await this.#putting;
  }

  async #take(): Promise<Snapshot> {
    const state = await this.#client.state();
    const rejected = [...this.#wanted.values()].flatMap((one) => [...one.rejected.keys()]);
    for (const [id, url] of (await this.#client.addresses(rejected)) ?? []) this.#urls.set(id, url);
    const versions: Version[] = [];
    const replicas = new Map<string, ObservedReplica[]>();
    const seen = new Set<string>();
    for (const [application, { status, message, deployed_app_config: config, deployments }] of Object.entries(
      state.applications,
    )) {
      const found = config === undefined ? this.#applications.get(application) : versionOf(config);
      if (found === undefined) continue;
      this.#applications.set(application, found);
      const { deployment, version } = found;
      const details = Object.values(deployments);
      const isFailed = status === "DEPLOY_FAILED";
      if (status !== "DELETING" && config !== undefined)
        versions.push({
          ...found,
          application,
          config,
          numReplicas: numReplicasOf(config),
          failure: isFailed ? reasonOf([message, ...details.map((one) => one.message)]) : undefined,
        });
      const list = replicas.get(deployment) ?? [];
      replicas.set(deployment, list);
      for (const one of details.flatMap((of) => of.replicas)) {
        const id = `${deployment}-${one.replica_id}`;
        seen.add(id);
        if (one.pid !== undefined) this.#pids.set(id, one.pid);
        const url = this.#urls.get(id);
        list.push({ id, version, url, state: stateOf(one, url, status) });
      }
    }
    for (const application of this.#applications.keys())
      if (state.applications[application] === undefined) this.#applications.delete(application);
    for (const known of [this.#urls, this.#pids])
      for (const id of known.keys()) if (!seen.has(id)) known.delete(id);
    const given = versions.find(({ replicaKey }) => replicaKey !== undefined)?.replicaKey;
    this.#replicaKey ??= given ?? randomBytes(32).toString("base64url");
    return { state, versions, replicas, replicaKey: this.#replicaKey };
  }
}

function stateOf({ state }: RayReplicaDetails, url: string | undefined, status: string): ReplicaState {
  if (state === "STOPPING" || status === "DELETING") return "stopping";
  return state === "STARTING" || url === undefined ? "starting" : "running";
}

function numReplicasOf(config: Readonly<Record<string, unknown>>): number {
  const [deployment] = Array.isArray(config["deployments"]) ? config["deployments"] : [];
  return Number(asRecord(deployment)["num_replicas"] ?? 0);
}

function scaled(deployments: unknown, numReplicas: number): readonly object[] {
  return (Array.isArray(deployments) ? deployments : []).map((one: object) => ({
    ...one,
    num_replicas: numReplicas,
  }));
}

/** The error that a replica's start ended in, out of Python's account of it. */
function reasonOf(messages: readonly string[]): string {
  const text = messages.join("\n").trim();
  const errors = [...text.matchAll(/^(?:\w+\.)*\w*(?:Error|Exception): (.+)$/gm)];
  return (errors.at(-1)?.[1] ?? text).slice(-300);
}
