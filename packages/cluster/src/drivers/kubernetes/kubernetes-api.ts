import { EventEmitter, once } from "node:events";
import type * as Client from "@kubernetes/client-node";
import { OctavoError } from "@octavo/protocol";
import type { KubernetesDriverConfig } from "../../config/deployment-schema.js";

/** What the driver asks of the API server, for one namespace. Failures are `runner_unavailable` with the server's own words. */
export interface KubernetesApi {
  readonly namespace: string;
  /** Undefined where there is none. */
  deployment(name: string): Promise<Client.V1Deployment | undefined>;
  pod(name: string): Promise<Client.V1Pod | undefined>;
  scale(name: string, replicas: number): Promise<void>;
  /** Merges by the rules of the types: containers by their names. */
  patchDeployment(name: string, patch: object): Promise<void>;
  deletePod(name: string): Promise<void>;
  /** EndpointSlices of a Service, from now until `stop`. It lists once, then watches from that version on; after 410 it lists again. */
  followEndpoints(service: string, onChange: () => void): EndpointsInformer;
}

export interface EndpointsInformer {
  /** As they were known last. */
  list(): readonly Client.V1EndpointSlice[];
  /** Whether it was ever listed, after a moment's wait where it was not yet. */
  hasSynced(): Promise<boolean>;
  stop(): void;
}

const restartMs = 1000;
const firstListMs = 2000;

/** @throws OctavoError `invalid_option` without the client's package, and for a kubeconfig that cannot be read */
export async function connect(config: KubernetesDriverConfig): Promise<KubernetesApi> {
  const client = await import("@kubernetes/client-node").catch((cause: unknown) => {
    throw new OctavoError(
      "invalid_option",
      "driver: kubernetes needs the package @kubernetes/client-node: npm install @kubernetes/client-node@1.4.0",
      { param: "driver", cause },
    );
  });
  const kubeConfig = new client.KubeConfig();
  try {
    if (config.kubeconfig === undefined) kubeConfig.loadFromDefault();
    else kubeConfig.loadFromFile(config.kubeconfig);
    if (config.context !== undefined) kubeConfig.setCurrentContext(config.context);
    if (kubeConfig.getCurrentCluster() === null) throw new TypeError("it names no cluster");
  } catch (cause) {
    throw new OctavoError("invalid_option", `driver.kubeconfig: ${(cause as Error).message}`, {
      param: "driver",
      cause,
    });
  }
  const namespace =
    config.namespace ?? kubeConfig.getContextObject(kubeConfig.getCurrentContext())?.namespace ?? "default";
  const apps = kubeConfig.makeApiClient(client.AppsV1Api);
  const core = kubeConfig.makeApiClient(client.CoreV1Api);
  const discovery = kubeConfig.makeApiClient(client.DiscoveryV1Api);
  const server = kubeConfig.getCurrentCluster()?.server ?? "";
  const asked = async <T>(promise: Promise<T>): Promise<T | undefined> => {
    try {
      return await promise;
    } catch (cause) {
      if (statusOf(cause) === 404) return undefined;
      throw new OctavoError("runner_unavailable", `Kubernetes at ${server}: ${messageOf(cause)}`, { cause });
    }
  };
  const patchAs = (strategy: Client.PatchStrategy) => client.setHeaderOptions("Content-Type", strategy);
  return {
    namespace,
    deployment: (name) => asked(apps.readNamespacedDeployment({ name, namespace })),
    pod: (name) => asked(core.readNamespacedPod({ name, namespace })),
    async scale(name, replicas) {
      const body = { spec: { replicas } };
      const options = patchAs(client.PatchStrategy.MergePatch);
      await asked(apps.patchNamespacedDeploymentScale({ name, namespace, body }, options));
    },
    async patchDeployment(name, body) {
      const options = patchAs(client.PatchStrategy.StrategicMergePatch);
      await asked(apps.patchNamespacedDeployment({ name, namespace, body }, options));
    },
    async deletePod(name) {
      await asked(core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 1 }));
    },
    followEndpoints(service, onChange) {
      const labelSelector = `kubernetes.io/service-name=${service}`;
      let hasSynced = false;
      const synced = new EventEmitter();
      let timer: NodeJS.Timeout | undefined;
      const informer = client.makeInformer(
        kubeConfig,
        `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?allowWatchBookmarks=true`,
        async () => {
          const list = await discovery.listNamespacedEndpointSlice({ namespace, labelSelector });
          hasSynced = true;
          synced.emit("synced");
          return list;
        },
        labelSelector,
      );
      for (const event of ["add", "update", "delete"] as const) informer.on(event, onChange);
      const start = (): void => {
        // failures come as events
        void informer.start().catch(restart);
      };
      const restart = (): void => {
        clearTimeout(timer);
        timer = setTimeout(start, restartMs).unref();
      };
      informer.on("error", restart);
      start();
      return {
        list: () => informer.list(),
        async hasSynced() {
          const signal = AbortSignal.timeout(firstListMs);
          if (!hasSynced) await once(synced, "synced", { signal }).catch(() => undefined);
          return hasSynced;
        },
        stop() {
          clearTimeout(timer);
          informer.off("error", restart);
          void informer.stop();
        },
      };
    },
  };
}

function statusOf(thrown: unknown): number | undefined {
  const code: unknown = (thrown as { code?: unknown }).code;
  return typeof code === "number" ? code : undefined;
}

/** The server's message, where it sent its Status object; otherwise what went wrong on the way. */
function messageOf(thrown: unknown): string {
  const { body, message } = thrown as { body?: unknown; message?: string };
  try {
    const status: unknown = typeof body === "string" ? JSON.parse(body) : body;
    const said = (status as { message?: unknown } | undefined)?.message;
    if (typeof said === "string") return said;
  } catch {
    // not its Status object
  }
  const text = message ?? String(thrown);
  // the client's account of an answer, headers and all, has what it means in a line of its own
  return (/^Message: (.+)$/m.exec(text)?.[1] ?? text).slice(0, 300);
}
