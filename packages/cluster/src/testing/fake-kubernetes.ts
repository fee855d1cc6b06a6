import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isHealthy } from "../controller/replica-identity.js";

interface Template {
  metadata: { annotations: Record<string, string> };
  spec: { containers: { name: string; args?: string[]; ports?: object[]; resources?: object }[] };
}

interface TemplatePatch {
  readonly minReadySeconds?: number;
  readonly template?: Partial<Template>;
}

interface Pod {
  readonly name: string;
  readonly ip: string;
  readonly version: string;
  readonly process: ChildProcess;
  isReady: boolean;
  readySinceMs: number;
  isTerminating: boolean;
}

interface WatchEvent {
  readonly version: number;
  readonly type: string;
  readonly object: object;
}

/** What the pods' Secret says. */
export const podReplicaKey = "a key of the pods' Secret";

const port = 8000;
const namespace = "default";

/**
 * An API server, a Deployment's controller, a kubelet and an EndpointSlice's controller for one Deployment, as Kubernetes 1.35 answers on the
 * wire (recorded-api.test.ts holds it to that): list and watch with resource versions, bookmarks, 410 Gone as an event of a watch that begins too far back, Status objects as
 * errors. Pods are processes with loopback addresses of their own.
 */
export class FakeKubernetes {
  readonly #server: Server;
  readonly #command: readonly string[];
  readonly #pods = new Map<string, Pod>();
  readonly #watchers = new Set<ServerResponse>();
  readonly #deployment: {
    replicas: number;
    minReadySeconds: number;
    maxUnavailable: number | string;
    template: Template;
  };
  #events: WatchEvent[] = [];
  #version = 1;
  #oldestVersion = 1;
  #nextPod = 0;
  #isAnswering = true;
  #isClosed = false;
  /** Requests by what they ask for. */
  readonly counts = { list: 0, watch: 0, patch: 0, delete: 0 };
  readonly #timer: NodeJS.Timeout;

  private constructor(command: readonly string[]) {
    this.#command = command;
    this.#deployment = {
      replicas: 0,
      minReadySeconds: 0,
      maxUnavailable: 0,
      template: {
        metadata: { annotations: {} },
        spec: { containers: [{ name: "octavo", ports: [{ name: "http", containerPort: port }] }] },
      },
    };
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#timer = setInterval(() => void this.#probe(), 50);
  }

  static async start(command: readonly string[]): Promise<FakeKubernetes> {
    const fake = new FakeKubernetes(command);
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }

  /** A kubeconfig that names it, as JSON, which is YAML. */
  get kubeconfig(): string {
    const { port: apiPort } = this.#server.address() as AddressInfo;
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "fake",
          cluster: { server: `http://127.0.0.1:${apiPort}`, "insecure-skip-tls-verify": true },
        },
      ],
      users: [{ name: "octavo", user: { token: "t" } }],
      contexts: [{ name: "fake", context: { cluster: "fake", user: "octavo", namespace } }],
      "current-context": "fake",
    });
  }

  get template(): Template {
    return this.#deployment.template;
  }

  set maxUnavailable(value: number | string) {
    this.#deployment.maxUnavailable = value;
  }

  /** Kills a pod's process, as its node's failure would. */
  kill(name: string): void {
    this.#pods.get(name)?.process.kill("SIGKILL");
  }

  /** Ends the watches that run, as API servers do after some minutes. */
  disconnect(): void {
    for (const watcher of this.#watchers) watcher.destroy();
  }

  /** Forgets what happened until now, as etcd's compaction does: watches that begin there get 410. */
  compact(): void {
    this.#version += 10;
    this.#oldestVersion = this.#version;
    this.#events = [];
  }

  bookmark(): void {
    this.#version += 1;
    this.#send({
      version: this.#version,
      type: "BOOKMARK",
      object: {
        kind: "EndpointSlice",
        apiVersion: "discovery.k8s.io/v1",
        metadata: { resourceVersion: String(this.#version) },
      },
    });
  }

  /** The control plane is gone; pods go on. */
  setAnswering(isAnswering: boolean): void {
    this.#isAnswering = isAnswering;
    if (!isAnswering) this.#server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const exits = [...this.#pods.values()].map(({ process: child }) => once(child, "exit"));
    for (const { process: child } of this.#pods.values()) child.kill("SIGKILL");
    await Promise.all(exits);
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#isAnswering) {
      request.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? "/", "http://fake");
    const send = (value: object, status = 200): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const route = `${request.method} ${url.pathname}`;
    const apps = `/apis/apps/v1/namespaces/${namespace}/deployments/fake`;
    const pods = `/api/v1/namespaces/${namespace}/pods/`;
    const pod = this.#pods.get(url.pathname.slice(pods.length));
    if (request.headers.authorization !== "Bearer t") send(statusOf(401, "Unauthorized"), 401);
    else if (route === `GET ${apps}`) send(this.#deploymentObject());
    else if (request.method === "PATCH" && url.pathname.startsWith(apps)) {
      this.counts.patch += 1;
      const patch = JSON.parse(text) as {
        spec?: TemplatePatch & { replicas?: number };
      };
      const type = request.headers["content-type"];
      if (url.pathname === `${apps}/scale` && type === "application/merge-patch+json")
        this.#deployment.replicas = patch.spec?.replicas ?? this.#deployment.replicas;
      else if (url.pathname === apps && type === "application/strategic-merge-patch+json")
        this.#merge(patch.spec ?? {});
      else {
        send(statusOf(415, `unsupported: ${type}`), 415);
        return;
      }
      this.#reconcile();
      send(url.pathname === apps ? this.#deploymentObject() : this.#scaleObject());
    } else if (url.pathname.startsWith(pods) && pod !== undefined) {
      if (request.method === "DELETE") {
        this.counts.delete += 1;
        this.#terminate(pod, "SIGKILL");
      }
      send({
        kind: "Pod",
        apiVersion: "v1",
        metadata: { name: pod.name, namespace, annotations: { "octavo.dev/version": pod.version } },
      });
    } else if (url.pathname === `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`) {
      if (url.searchParams.get("watch") === "true") this.#watch(url, response);
      else {
        this.counts.list += 1;
        // lists say once what their items are
        const items = [{ ...this.#sliceObject(), kind: undefined, apiVersion: undefined }];
        const metadata = { resourceVersion: String(this.#version) };
        send({ kind: "EndpointSliceList", apiVersion: "discovery.k8s.io/v1", metadata, items });
      }
    } else send(statusOf(404, `${url.pathname} not found`), 404);
  }

  #watch(url: URL, response: ServerResponse): void {
    this.counts.watch += 1;
    const since = Number(url.searchParams.get("resourceVersion"));
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (since < this.#oldestVersion) {
      const gone = statusOf(410, `too old resource version: ${since} (${this.#oldestVersion})`);
      response.end(`${JSON.stringify({ type: "ERROR", object: gone })}\n`);
      return;
    }
    for (const event of this.#events.filter(({ version }) => version > since)) write(response, event);
    this.#watchers.add(response);
    response.once("close", () => this.#watchers.delete(response));
  }

  #merge({ template: patch, minReadySeconds }: TemplatePatch): void {
    const { template } = this.#deployment;
    this.#deployment.minReadySeconds = minReadySeconds ?? this.#deployment.minReadySeconds;
    Object.assign(template.metadata.annotations, patch?.metadata?.annotations);
    for (const container of patch?.spec?.containers ?? []) {
      const known = template.spec.containers.find(({ name }) => name === container.name);
      if (known === undefined) template.spec.containers.push(container);
      else Object.assign(known, container);
    }
  }

  /** The Deployment's controller with maxSurge 1 and maxUnavailable 0. */
  #reconcile(): void {
    if (this.#isClosed) return;
    const { replicas, minReadySeconds, template } = this.#deployment;
    const version = template.metadata.annotations["octavo.dev/version"] ?? "";
    const live = [...this.#pods.values()].filter(({ isTerminating }) => !isTerminating);
    const current = live.filter((pod) => pod.version === version);
    const old = live.filter((pod) => pod.version !== version);
    const availableSinceMs = performance.now() - minReadySeconds * 1000;
    const isAvailable = (pod: Pod): boolean => pod.isReady && pod.readySinceMs <= availableSinceMs;
    // those that are not ready go first
    const numSpare = live.filter(isAvailable).length - replicas;
    const gone = old.filter((pod) => !isAvailable(pod));
    for (const pod of gone) this.#terminate(pod, "SIGTERM");
    for (const pod of old.filter(isAvailable).slice(0, Math.max(0, numSpare)))
      this.#terminate(pod, "SIGTERM");
    for (const pod of current.slice(replicas)) this.#terminate(pod, "SIGTERM");
    const room = replicas + (old.length > 0 ? 1 : 0) - live.length;
    for (let number = 0; number < Math.min(room, replicas - current.length); number += 1)
      this.#startPod(version);
  }

  #startPod(version: string): void {
    this.#nextPod += 1;
    const name = `fake-${version}-${this.#nextPod}`;
    const ip = `127.0.${1 + (process.pid % 250)}.${this.#nextPod}`;
    const given = this.#deployment.template.spec.containers[0]?.args ?? [];
    const args = given.map((word) => (word === "0.0.0.0" ? ip : word.replace("$(POD_NAME)", name)));
    const [file = "", ...before] = this.#command;
    const child = spawn(file, [...before, ...args], {
      stdio: "ignore",
      env: { ...process.env, OCTAVO_REPLICA_KEY: podReplicaKey },
    });
    const pod: Pod = {
      name,
      ip,
      version,
      process: child,
      isReady: false,
      readySinceMs: 0,
      isTerminating: false,
    };
    this.#pods.set(name, pod);
    child.once("exit", () => {
      this.#pods.delete(name);
      this.#publish();
      // as the kubelet does with containers that end again and again
      setTimeout(() => this.#reconcile(), pod.isReady || pod.isTerminating ? 20 : 300);
    });
    this.#publish();
  }

  #terminate(pod: Pod, signal: NodeJS.Signals): void {
    pod.isTerminating = true;
    this.#publish();
    pod.process.kill(signal);
  }

  /** The kubelet's readiness probes. */
  async #probe(): Promise<void> {
    for (const pod of this.#pods.values()) {
      const isReady = await isHealthy(`http://${pod.ip}:${port}`, 500);
      if (isReady === pod.isReady) continue;
      pod.isReady = isReady;
      pod.readySinceMs = performance.now();
      this.#publish();
    }
    this.#reconcile();
  }

  #publish(): void {
    this.#version += 1;
    this.#send({ version: this.#version, type: "MODIFIED", object: this.#sliceObject() });
  }

  #send(event: WatchEvent): void {
    this.#events.push(event);
    for (const watcher of this.#watchers) write(watcher, event);
  }

  #scaleObject(): object {
    const { replicas } = this.#deployment;
    const metadata = { name: "fake", namespace, resourceVersion: String(this.#version) };
    const status = { replicas: this.#pods.size };
    return { kind: "Scale", apiVersion: "autoscaling/v1", metadata, spec: { replicas }, status };
  }

  #deploymentObject(): object {
    const { replicas, template, maxUnavailable } = this.#deployment;
    return {
      kind: "Deployment",
      apiVersion: "apps/v1",
      metadata: { name: "fake", namespace },
      spec: {
        replicas,
        selector: { matchLabels: { app: "fake" } },
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable } },
        template,
      },
    };
  }

  #sliceObject(): object {
    return {
      kind: "EndpointSlice",
      apiVersion: "discovery.k8s.io/v1",
      metadata: {
        name: "fake-x7k2p",
        namespace,
        resourceVersion: String(this.#version),
        labels: { "kubernetes.io/service-name": "fake" },
      },
      addressType: "IPv4",
      ports: [{ name: "http", port, protocol: "TCP" }],
      endpoints: [...this.#pods.values()].map(({ name, ip, isReady, isTerminating }) => ({
        addresses: [ip],
        conditions: { ready: isReady && !isTerminating, serving: isReady, terminating: isTerminating },
        targetRef: { kind: "Pod", name, namespace },
      })),
    };
  }
}

function write(response: ServerResponse, { type, object }: WatchEvent): void {
  response.write(`${JSON.stringify({ type, object })}\n`);
}

function statusOf(code: number, message: string): object {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, code };
}
