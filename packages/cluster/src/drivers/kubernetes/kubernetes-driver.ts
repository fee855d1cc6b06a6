import type { V1Deployment, V1Endpoint, V1EndpointSlice } from "@kubernetes/client-node";
import { OctavoError } from "@octavo/protocol";
import type { KubernetesDriverConfig } from "../../config/deployment-schema.js";
import type {
  ObservedReplica,
  ReplicaDriver,
  ReplicaSpec,
  ReplicaState,
  WantedReplicas,
} from "../replica-driver.js";
import { serveArgs } from "../serve-args.js";
import { connect, type EndpointsInformer, type KubernetesApi } from "./kubernetes-api.js";

export interface KubernetesDriverOptions {
  readonly config: KubernetesDriverConfig;
  readonly tell: (message: string) => void;
}

/** Which specification a Deployment's pods were made from. */
const versionAnnotation = "octavo.dev/version";
/** The container of the chart's pods that runs Octavo, and its port. */
const containerName = "octavo";
const portName = "http";

interface Followed {
  readonly object: string;
  readonly endpoints: EndpointsInformer;
  readonly versions: Map<string, string>;
  readonly deleted: Set<string>;
  current: V1Deployment | undefined;
  askedMs: number;
}

/**
 * Replicas as pods of a Deployment that the Helm chart made. Kubernetes places, restarts and updates them (the Deployment must not go below
 * its number in an update); this scales it, says what its pods run, and finds them by EndpointSlices.
 */
export class KubernetesDriver implements ReplicaDriver {
  readonly kind = "kubernetes";
  readonly #options: KubernetesDriverOptions;
  readonly #followed = new Map<string, Promise<Followed>>();
  readonly #listeners: ((deployment: string) => void)[] = [];
  #api: Promise<KubernetesApi> | undefined;

  constructor(options: KubernetesDriverOptions) {
    this.#options = options;
  }

  get replicaKey(): string | undefined {
    return this.#options.config.replica_key;
  }

  async problems(specs: readonly ReplicaSpec[]): Promise<readonly string[]> {
    try {
      const api = await this.#connect();
      const found = await Promise.all(
        specs.map(async ({ deployment: { name } }) => {
          const object = this.#objectOf(name);
          const problem = problemOf(await api.deployment(object));
          return problem === undefined
            ? []
            : [`${name}: Deployment ${object} in ${api.namespace} ${problem}`];
        }),
      );
      return found.flat();
    } catch (thrown) {
      return [OctavoError.from(thrown).message];
    }
  }

  async apply({ spec, count, rejected }: WantedReplicas): Promise<void> {
    const api = await this.#connect();
    const followed = await this.#follow(spec.deployment.name);
    const deployment = await this.#current(api, followed);
    for (const name of followed.deleted) if (!rejected.has(name)) followed.deleted.delete(name);
    for (const name of rejected.keys()) {
      if (followed.deleted.has(name)) continue;
      await api.deletePod(name);
      followed.deleted.add(name);
    }
    const running = deployment.spec?.template.metadata?.annotations?.[versionAnnotation];
    if (running !== spec.version) {
      await api.patchDeployment(
        followed.object,
        templateOf(spec, deployment, this.#options.config.min_ready_seconds),
      );
      followed.current = undefined;
    }
    if (deployment.spec?.replicas !== count) {
      await api.scale(followed.object, count);
      followed.current = undefined;
    }
  }

  async observe(name: string): Promise<readonly ObservedReplica[]> {
    const api = await this.#connect();
    const followed = await this.#follow(name);
    await this.#current(api, followed);
    const observed = followed.endpoints.list().flatMap(replicasOf);
    await Promise.all(
      observed.map(async ({ id }) => {
        if (followed.versions.has(id)) return;
        const pod = await api.pod(id);
        if (pod !== undefined)
          followed.versions.set(id, pod.metadata?.annotations?.[versionAnnotation] ?? "");
      }),
    );
    for (const id of followed.versions.keys())
      if (!observed.some((one) => one.id === id)) followed.versions.delete(id);
    return observed.flatMap((one) => {
      const version = followed.versions.get(one.id);
      return version === undefined ? [] : [{ ...one, version }];
    });
  }

  onChange(listener: (deployment: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Pods go on: the Deployments are not this driver's. */
  async close(): Promise<void> {
    for (const followed of await Promise.allSettled(this.#followed.values()))
      if (followed.status === "fulfilled") followed.value.endpoints.stop();
    this.#followed.clear();
  }

  #objectOf(name: string): string {
    return this.#options.config.objects[name] ?? name;
  }

  #connect(): Promise<KubernetesApi> {
    this.#api ??= connect(this.#options.config);
    return this.#api;
  }

  #follow(name: string): Promise<Followed> {
    let followed = this.#followed.get(name);
    if (followed === undefined) {
      followed = this.#connect().then((api) => {
        const object = this.#objectOf(name);
        const notify = (): void => {
          for (const listener of this.#listeners) listener(name);
        };
        const endpoints = api.followEndpoints(object, notify);
        const nothing = { current: undefined, askedMs: Number.NEGATIVE_INFINITY };
        return { object, endpoints, versions: new Map(), deleted: new Set(), ...nothing };
      });
      this.#followed.set(name, followed);
    }
    return followed;
  }

  /** The Deployment as it was a moment ago. Throws where the API server does not answer: what is known of endpoints may be old then. */
  async #current(api: KubernetesApi, followed: Followed): Promise<V1Deployment> {
    const { object, endpoints } = followed;
    const isRecent = performance.now() - followed.askedMs < this.#options.config.poll_interval_s * 1000;
    if (followed.current === undefined || !isRecent) {
      followed.current = undefined;
      followed.current = await api.deployment(object);
      followed.askedMs = performance.now();
    }
    if (followed.current === undefined)
      throw new OctavoError("runner_unavailable", `there is no Deployment ${object} in ${api.namespace}`);
    if (!(await endpoints.hasSynced()))
      throw new OctavoError("runner_unavailable", `the endpoints of Service ${object} are not known yet`);
    return followed.current;
  }
}

function problemOf(deployment: V1Deployment | undefined): string | undefined {
  if (deployment === undefined)
    return "is not there; install the chart deploy/helm/octavo, or name it in driver.objects";
  if (containerOf(deployment) === undefined)
    return `has no container ${containerName} with a port ${portName}`;
  const { type, rollingUpdate } = deployment.spec?.strategy ?? {};
  const most = rollingUpdate?.maxUnavailable ?? "25%";
  if (type === "Recreate" || Number.parseInt(String(most), 10) !== 0)
    return "has too few replicas during an update; set its strategy's maxUnavailable to 0";
  return undefined;
}

function containerOf(deployment: V1Deployment) {
  const container = deployment.spec?.template.spec?.containers.find(({ name }) => name === containerName);
  const port = container?.ports?.find(({ name }) => name === portName)?.containerPort;
  return port === undefined ? undefined : { port };
}

/** What makes pods run a specification, as a strategic merge patch. */
function templateOf(spec: ReplicaSpec, deployment: V1Deployment, minReadySeconds: number): object {
  const { num_cpus, memory } = spec.deployment.ray_actor_options;
  const port = containerOf(deployment)?.port ?? 8000;
  const requests = {
    ...(num_cpus > 0 && { cpu: String(num_cpus) }),
    ...(memory !== undefined && { memory: String(memory) }),
  };
  const listens = ["--host", "0.0.0.0", "--port", String(port), "--replica-id", "$(POD_NAME)"];
  return {
    spec: {
      // for Kubernetes a pod that answers is as good as another; one that differs is deleted within this time, and replaces none
      minReadySeconds,
      template: {
        metadata: { annotations: { [versionAnnotation]: spec.version } },
        spec: {
          containers: [
            {
              name: containerName,
              args: [...serveArgs(spec, num_cpus), ...listens],
              resources: { requests },
            },
          ],
        },
      },
    },
  };
}

function replicasOf(slice: V1EndpointSlice): readonly Omit<ObservedReplica, "version">[] {
  const port = slice.ports?.find(({ name }) => name === portName)?.port ?? slice.ports?.[0]?.port;
  return (slice.endpoints ?? []).flatMap((endpoint) => {
    const [address] = endpoint.addresses;
    const id = endpoint.targetRef?.name;
    if (id === undefined || address === undefined || port === undefined) return [];
    const host = slice.addressType === "IPv6" ? `[${address}]` : address;
    return [{ id, url: `http://${host}:${port}`, state: stateOf(endpoint) }];
  });
}

/** A pod with an address runs; whether it answers is for whoever asks it to find out. Absent conditions mean that it does not end. */
function stateOf({ conditions }: V1Endpoint): ReplicaState {
  return conditions?.terminating === true ? "stopping" : "running";
}
