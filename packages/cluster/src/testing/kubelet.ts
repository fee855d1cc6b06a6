import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { asObjects, asRecord, asString, type JsonFields } from "@octavo/protocol";
import { isHealthy } from "../controller/replica-identity.js";
import { podReplicaKey } from "./fake-kubernetes.js";

export interface ApiCallOptions {
  readonly body?: JsonFields | string;
  readonly type?: string;
  /** Default the administrator. */
  readonly as?: "admin" | "driver" | "nobody";
}

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
}

export type ApiMethod = "GET" | "POST" | "PATCH" | "DELETE";

export interface KubeletOptions {
  readonly plane: {
    readonly call: (method: ApiMethod, path: string, options?: ApiCallOptions) => Promise<ApiAnswer>;
    readonly create: (yaml: string) => Promise<void>;
  };
  readonly command: readonly string[];
  readonly network: string;
}

interface Pod {
  readonly name: string;
  readonly ip: string;
  process: ChildProcess;
  isReady: boolean;
  isEnding: boolean;
}

const node = "node-1";
const periodMs = 100;
const pods = "/api/v1/namespaces/default/pods";

/** Scheduler and kubelet of one node: binds pods, runs their container as a process, probes it, restarts it, and says how it is. */
export class Kubelet {
  readonly #options: KubeletOptions;
  readonly #pods = new Map<string, Pod>();
  #numPods = 0;
  #isClosed = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  async register(): Promise<void> {
    await this.#options.plane.create(`apiVersion: v1\nkind: Node\nmetadata: { name: ${node} }\n`);
    this.#running = this.#run();
  }

  async fail(name: string): Promise<void> {
    const pod = this.#pods.get(name);
    if (pod === undefined) return;
    pod.isEnding = true;
    pod.process.kill("SIGKILL");
    await this.#remove(name);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
    for (const { process: child } of this.#pods.values()) {
      if (hasEnded(child)) continue;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const { text } = await this.#options.plane.call("GET", pods);
        const listed = asObjects(asRecord(JSON.parse(text))["items"]);
        await Promise.all(listed.map((pod) => this.#sync(pod)));
      } catch {
        // the API server is being restarted
      }
      await new Promise((resolve) => setTimeout(resolve, periodMs));
    }
  }

  async #sync(object: JsonFields): Promise<void> {
    const { plane } = this.#options;
    const [metadata, spec] = [asRecord(object["metadata"]), asRecord(object["spec"])];
    const name = asString(metadata["name"]) ?? "";
    const pod = this.#pods.get(name);
    if (metadata["deletionTimestamp"] !== undefined) {
      if (pod !== undefined && !pod.isEnding) {
        pod.isEnding = true;
        pod.process.kill("SIGTERM");
      }
      if (pod === undefined || hasEnded(pod.process)) await this.#remove(name);
    } else if (spec["nodeName"] === undefined) {
      const target = { apiVersion: "v1", kind: "Node", name: node };
      const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
      await plane.call("POST", `${pods}/${name}/binding`, { body });
    } else if (pod === undefined) {
      this.#numPods += 1;
      const ip = `${this.#options.network}.${this.#numPods}`;
      const started = { name, ip, process: this.#start(name, ip, spec), isReady: false, isEnding: false };
      this.#pods.set(name, started);
      await this.#report(started);
    } else {
      // a container that ended is started again in its pod
      if (hasEnded(pod.process) && !pod.isEnding) pod.process = this.#start(name, pod.ip, spec);
      const isReady = await isHealthy(`http://${pod.ip}:8000`, 500);
      if (isReady === pod.isReady) return;
      pod.isReady = isReady;
      await this.#report(pod);
    }
  }

  #start(name: string, ip: string, spec: JsonFields): ChildProcess {
    const [container] = asObjects(spec["containers"]);
    const words = Array.isArray(container?.["args"]) ? container["args"].map(String) : [];
    const args = words.map((word) => (word === "0.0.0.0" ? ip : word.replace("$(POD_NAME)", name)));
    const [file = "", ...before] = this.#options.command;
    const hasKey = asObjects(container?.["env"]).some((one) => one["name"] === "OCTAVO_REPLICA_KEY");
    const env = { ...process.env, ...(hasKey && { OCTAVO_REPLICA_KEY: podReplicaKey }) };
    return spawn(file, [...before, ...args], { stdio: "ignore", env });
  }

  async #report({ name, ip, isReady }: Pod): Promise<void> {
    const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
    const condition = (type: string, isTrue: boolean): JsonFields => ({
      type,
      status: isTrue ? "True" : "False",
      lastTransitionTime: now,
    });
    const status = {
      phase: "Running",
      podIP: ip,
      podIPs: [{ ip }],
      startTime: now,
      conditions: [
        condition("PodScheduled", true),
        condition("Initialized", true),
        condition("ContainersReady", isReady),
        condition("Ready", isReady),
      ],
    };
    await this.#options.plane.call("PATCH", `${pods}/${name}/status`, {
      body: { status },
      type: "application/strategic-merge-patch+json",
    });
  }

  async #remove(name: string): Promise<void> {
    await this.#options.plane.call("DELETE", `${pods}/${name}`, { body: { gracePeriodSeconds: 0 } });
    this.#pods.delete(name);
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
