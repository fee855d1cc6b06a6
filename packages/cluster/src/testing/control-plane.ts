import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "@octavo/protocol/free-ports";
import { Agent, request } from "undici";
import { type ApiAnswer, type ApiMethod, type ApiCallOptions, Kubelet } from "./kubelet.js";

export interface ControlPlaneOptions {
  /** Folder with `etcd`, `kube-apiserver` and `kube-controller-manager`. */
  readonly binaries: string;
  /** What stands before the arguments of pods' containers. */
  readonly command: readonly string[];
  /** First three numbers of pods' addresses, which this machine must have; Kubernetes takes no loopback addresses. */
  readonly network: string;
  /** Who the driver is, such as `system:serviceaccount:default:gateway`. */
  readonly user: string;
  /** Created at the start: YAML, as Helm renders charts. */
  readonly manifests: readonly string[];
}

const namespace = "default";
const tokens = { admin: "admin-token", driver: "driver-token", nobody: "another-token" };

/**
 * A real API server and the real controllers of Deployments, ReplicaSets and EndpointSlices over a real etcd, as processes. There are no
 * containers: the kubelet is a stand-in whose pods are processes.
 */
export class ControlPlane {
  readonly server: string;
  readonly #folder: string;
  readonly #processes: ChildProcess[] = [];
  readonly #agent = new Agent({ connect: { rejectUnauthorized: false } });
  readonly #user: string;
  #kubelet: Kubelet | undefined;
  #apiServer: ChildProcess | undefined;
  #startApiServer: (() => ChildProcess) | undefined;

  private constructor(server: string, folder: string, user: string) {
    this.server = server;
    this.#folder = folder;
    this.#user = user;
  }

  static async start({
    binaries,
    command,
    network,
    user,
    manifests,
  }: ControlPlaneOptions): Promise<ControlPlane> {
    const folder = await mkdtemp(join(tmpdir(), "octavo-control-plane-"));
    const [etcd = 0, peer = 0, api = 0] = await freePorts(3);
    const plane = new ControlPlane(`https://127.0.0.1:${api}`, folder, user);
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    await plane.#write("sa.key", privateKey.export({ type: "pkcs8", format: "pem" }));
    await plane.#write("sa.pub", publicKey.export({ type: "spki", format: "pem" }));
    await plane.#write(
      "tokens.csv",
      `${tokens.admin},admin,1,"system:masters"\n${tokens.driver},${user},2\n`,
    );
    const [client, peers] = [`http://127.0.0.1:${etcd}`, `http://127.0.0.1:${peer}`];
    plane.#run(join(binaries, "etcd"), {
      "data-dir": join(folder, "etcd"),
      "listen-client-urls": client,
      "advertise-client-urls": client,
      "listen-peer-urls": peers,
      "initial-advertise-peer-urls": peers,
      "initial-cluster": `default=${peers}`,
    });
    const flags = {
      "etcd-servers": client,
      "secure-port": String(api),
      "bind-address": "127.0.0.1",
      "advertise-address": `${network}.1`,
      "cert-dir": folder,
      "service-account-issuer": "https://octavo.test",
      "service-account-key-file": join(folder, "sa.pub"),
      "service-account-signing-key-file": join(folder, "sa.key"),
      "service-cluster-ip-range": "10.96.0.0/24",
      "token-auth-file": join(folder, "tokens.csv"),
      "authorization-mode": "RBAC",
      "disable-admission-plugins": "ServiceAccount",
    };
    plane.#startApiServer = () => plane.#run(join(binaries, "kube-apiserver"), flags);
    plane.#apiServer = plane.#startApiServer();
    await plane.#untilUp();
    const config = await plane.#write("admin.kubeconfig", plane.#kubeconfig(tokens.admin));
    plane.#run(join(binaries, "kube-controller-manager"), {
      kubeconfig: config,
      controllers: "deployment-controller,replicaset-controller,endpointslice-controller",
      "leader-elect": "false",
      "secure-port": "0",
    });
    for (const manifest of manifests)
      for (const document of manifest.split(/^---$/m))
        if (/^kind:/m.test(document)) await plane.create(document);
    plane.#kubelet = new Kubelet({ plane, command, network });
    await plane.#kubelet.register();
    return plane;
  }

  /** A kubeconfig of the driver, as JSON, which is YAML. */
  get kubeconfig(): string {
    return this.#kubeconfig(tokens.driver);
  }

  async call(
    method: ApiMethod,
    path: string,
    { body, type = "application/json", as = "admin" }: ApiCallOptions = {},
  ): Promise<ApiAnswer> {
    const answer = await request(this.server + path, {
      method,
      dispatcher: this.#agent,
      headers: {
        authorization: `Bearer ${tokens[as]}`,
        accept: "application/json",
        ...(body !== undefined && { "content-type": type }),
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  /** One object. */
  async create(yaml: string): Promise<void> {
    const [api = "", kind = ""] = ["apiVersion", "kind"].map(
      (field) => new RegExp(`^${field}: *(.+)$`, "m").exec(yaml)?.[1],
    );
    const name = kind.toLowerCase();
    const plural = name.endsWith("y") ? `${name.slice(0, -1)}ies` : `${name}s`;
    const scope = kind === "Node" ? "" : `/namespaces/${namespace}`;
    const path = `/${api.includes("/") ? "apis" : "api"}/${api}${scope}/${plural}`;
    const { status, text } = await this.call("POST", path, { body: yaml, type: "application/yaml" });
    if (status !== 201) throw new TypeError(`${kind}: ${text}`);
  }

  /** A node's failure: its pod's process dies, and the pod is evicted. */
  kill(name: string): Promise<void> | undefined {
    return this.#kubelet?.fail(name);
  }

  async close(): Promise<void> {
    await this.#kubelet?.close();
    for (const child of this.#processes.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
    await this.#agent.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** The API server forgets what happened before: watches from there are told so. */
  async restartApiServer(): Promise<void> {
    const before = this.#apiServer;
    if (before === undefined) return;
    this.#processes.splice(this.#processes.indexOf(before), 1);
    const exited = once(before, "exit");
    before.kill("SIGKILL");
    await exited;
    this.#apiServer = this.#startApiServer?.();
    await this.#untilUp();
  }

  async #untilUp(): Promise<void> {
    const isUp = async (path: string): Promise<boolean> =>
      this.call("GET", path).then(
        ({ status }) => status === 200,
        () => false,
      );
    while (!(await isUp("/readyz")) || !(await isUp(`/api/v1/namespaces/${namespace}`))) await this.#rest();
  }

  #run(file: string, flags: Readonly<Record<string, string>>): ChildProcess {
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const child = spawn(file, args, { stdio: "ignore", cwd: this.#folder });
    this.#processes.push(child);
    return child;
  }

  async #rest(): Promise<void> {
    if (this.#processes.some(({ exitCode }) => exitCode !== null)) {
      await this.close();
      throw new TypeError("the control plane did not start");
    }
    await sleep(200);
  }

  async #write(name: string, text: string | Buffer): Promise<string> {
    const path = join(this.#folder, name);
    await writeFile(path, text);
    return path;
  }

  #kubeconfig(token: string): string {
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "real", cluster: { server: this.server, "insecure-skip-tls-verify": true } }],
      users: [{ name: this.#user, user: { token } }],
      contexts: [{ name: "real", context: { cluster: "real", user: this.#user, namespace } }],
      "current-context": "real",
    });
  }
}
