import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { totalmem } from "node:os";
import type { LocalDriverConfig } from "../../config/deployment-schema.js";
import type { ObservedReplica, ReplicaDriver, ReplicaSpec, WantedReplicas } from "../replica-driver.js";
import { CoreSet, ownCores, parseCores } from "./core-set.js";
import { isInstalled, Launcher } from "./launcher.js";
import { LocalReplica } from "./local-replica.js";
import { planLocal } from "./plan-local.js";
import { ReplicaLog } from "./replica-log.js";

export interface LocalDriverOptions {
  readonly config: Pick<LocalDriverConfig, "cores" | "log">;
  /** What stands before `serve`: Node and octavo's script. */
  readonly command: readonly string[];
  /** What starts a process that waits to be a replica, as `Launcher` says; without it none waits. */
  readonly standby?: readonly string[] | undefined;
  readonly tell: (message: string) => void;
}

/** The first replica that ends before it was ready is replaced at once, the next ones after ever longer times. */
const firstBackoffMs = 500;
const longestBackoffMs = 30_000;
/** A replica that was ready and ends sooner counts as one that never was. */
const flappingMs = 10_000;

interface Deployment {
  readonly replicas: Map<string, LocalReplica>;
  wanted: WantedReplicas | undefined;
  readonly everReady: Set<string>;
  /** Replicas in a row that ended without having been ready. */
  failures: number;
  startAfterMs: number;
  nextNumber: number;
}

/** Replicas as child processes of this one, each pinned to its cores. */
export class LocalDriver implements ReplicaDriver {
  readonly kind = "local";
  /** In the environment of replicas: other users can read command lines. */
  readonly replicaKey = randomBytes(32).toString("base64url");
  readonly #options: LocalDriverOptions;
  readonly #log: ReplicaLog;
  readonly #cores: CoreSet;
  readonly #launcher: Launcher;
  readonly #deployments = new Map<string, Deployment>();
  readonly #listeners: ((deployment: string) => void)[] = [];
  #isClosed = false;

  constructor(options: LocalDriverOptions) {
    this.#options = options;
    this.#log = new ReplicaLog(options.config.log);
    const { command, standby, config } = options;
    const { cores } = config;
    const environment = { OCTAVO_REPLICA_KEY: this.replicaKey };
    this.#launcher = new Launcher({ command, standby, environment });
    this.#cores = new CoreSet(cores === undefined ? ownCores() : parseCores(cores));
  }

  get droppedLogLines(): number {
    return this.#log.droppedLines;
  }

  async problems(specs: readonly ReplicaSpec[]): Promise<readonly string[]> {
    const found: string[] = [];
    const { cores } = this.#cores;
    const own = new Set(ownCores());
    const foreign = cores.filter((core) => !own.has(core));
    if (foreign.length > 0)
      found.push(
        `driver.cores: this process may not run on ${foreign.join(",")}, only on ${[...own].join(",")}`,
      );
    let [numCores, bytes] = [0, 0];
    for (const { deployment } of specs) {
      const { num_cpus, memory = 0 } = deployment.ray_actor_options;
      const { max_replicas } = deployment.autoscaling;
      numCores += max_replicas * num_cpus;
      bytes += max_replicas * memory;
      const { model_source: source } = deployment.model_loading_config;
      if (source !== undefined && /^[./~]|\.gguf$/.test(source) && !existsSync(source))
        found.push(`${deployment.name}: there is no model at ${source}`);
    }
    if (numCores > cores.length)
      found.push(
        `all replicas at their most take ${numCores} cores (max_replicas × num_cpus); there are ${cores.length}`,
      );
    if (bytes > totalmem())
      found.push(
        `all replicas at their most take ${gib(bytes)} (max_replicas × memory); the machine has ${gib(totalmem())}`,
      );
    if (found.length === 0 && numCores > 0 && !isInstalled("taskset"))
      this.#options.tell("taskset is not installed: replicas are not pinned to their cores");
    return found;
  }

  async apply(wanted: WantedReplicas): Promise<void> {
    const { name } = wanted.spec.deployment;
    const deployment = this.#deploymentOf(name);
    deployment.wanted = wanted;
    for (const id of wanted.ready) {
      deployment.everReady.add(id);
      if (ageOf(deployment.replicas.get(id)) > flappingMs) deployment.failures = 0;
    }
    if (this.#isClosed) return;
    const { start, stop } = planLocal(wanted, [...deployment.replicas.values()]);
    for (const { id, how } of stop) {
      if (wanted.rejected.has(id)) this.#noteFailure(name, deployment, id, wanted.rejected.get(id) ?? "");
      deployment.replicas.get(id)?.stop(how);
    }
    if (performance.now() < deployment.startAfterMs) return;
    for (let number = 0; number < start; number += 1) this.#start(wanted.spec, deployment);
    const isStarting = [...this.#deployments.values()].some(({ replicas, everReady }) =>
      [...replicas.keys()].some((id) => !everReady.has(id)),
    );
    if (!isStarting) this.#launcher.prepare();
  }

  async observe(name: string): Promise<readonly ObservedReplica[]> {
    return [...(this.#deployments.get(name)?.replicas.values() ?? [])];
  }

  /** Process id of a replica, for tests and benchmarks that kill it. */
  pidOf(id: string): number | undefined {
    for (const { replicas } of this.#deployments.values()) {
      const replica = replicas.get(id);
      if (replica !== undefined) return replica.pid;
    }
    return undefined;
  }

  /** Process id of the process that waits to be the next replica. */
  get standbyPid(): number | undefined {
    return this.#launcher.waitingPid;
  }

  onChange(listener: (deployment: string) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const all = [...this.#deployments.values()].flatMap(({ replicas }) => [...replicas.values()]);
    for (const replica of all) replica.stop("drain");
    await Promise.all(all.map(({ ended }) => ended));
    await this.#launcher.close();
    await this.#log.close();
  }

  #deploymentOf(name: string): Deployment {
    let deployment = this.#deployments.get(name);
    if (deployment === undefined) {
      deployment = {
        replicas: new Map(),
        wanted: undefined,
        everReady: new Set(),
        failures: 0,
        startAfterMs: 0,
        nextNumber: 0,
      };
      this.#deployments.set(name, deployment);
    }
    return deployment;
  }

  #start(spec: ReplicaSpec, deployment: Deployment): void {
    const { name, ray_actor_options } = spec.deployment;
    const id = `${name}-${deployment.nextNumber}`;
    deployment.nextNumber += 1;
    const replica = new LocalReplica({
      id,
      spec,
      launcher: this.#launcher,
      cores: this.#cores.take(id, ray_actor_options.num_cpus),
      log: this.#log,
      onChange: () => {
        if (replica.hasEnded) this.#forget(name, deployment, replica);
        for (const listener of this.#listeners) listener(name);
      },
    });
    deployment.replicas.set(id, replica);
  }

  #forget(name: string, deployment: Deployment, replica: LocalReplica): void {
    if (!deployment.replicas.delete(replica.id)) return;
    this.#cores.release(replica.id);
    if (replica.state === "stopping") return;
    this.#options.tell(`${replica.id} ended by itself (${replica.ending})`);
    const wasReady = deployment.everReady.delete(replica.id);
    if (!wasReady || ageOf(replica) < flappingMs)
      this.#noteFailure(name, deployment, replica.id, replica.ending);
  }

  #noteFailure(name: string, deployment: Deployment, id: string, reason: string): void {
    deployment.failures += 1;
    const waitMs = Math.min(longestBackoffMs, firstBackoffMs * 2 ** (deployment.failures - 2));
    if (deployment.failures > 1) deployment.startAfterMs = performance.now() + waitMs;
    this.#options.tell(
      `${id}: ${reason}; ${deployment.failures} of ${name} in a row${deployment.failures > 1 ? `, the next one starts in ${waitMs / 1000} s` : ""}`,
    );
  }
}

function ageOf(replica: LocalReplica | undefined): number {
  return replica === undefined ? 0 : performance.now() - replica.startedMs;
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
