import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "../free-ports.js";

/** The `ray` command: of the virtual environment that `RAY_VENV` names, or the machine's own. */
const rayCommand =
  process.env["RAY_VENV"] === undefined ? "ray" : join(process.env["RAY_VENV"], "bin", "ray");

/** Whether this machine has a Ray to test with. */
export const hasRay = spawnSync(rayCommand, ["--version"]).status === 0;

const startTimeoutMs = 90_000;

const environment = {
  ...process.env,
  // a node that is gone is noticed after two seconds; one that is only slow has ten for each answer, as always
  RAY_health_check_period_ms: "1000",
  RAY_health_check_failure_threshold: "2",
  // a replica whose start fails is given up the first time, not the third
  RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT: "1",
};

/** One raylet and what it started, in a process group of its own, so that it ends with all of that. */
export class RayNode {
  readonly process: ChildProcess;

  constructor(options: readonly string[]) {
    const common = ["--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1"];
    const ports = ["--min-worker-port=0", "--max-worker-port=0", "--object-store-memory=100000000"];
    this.process = spawn(rayCommand, ["start", ...common, ...ports, ...options], {
      stdio: "ignore",
      detached: true,
      env: environment,
    });
  }

  /** As a machine's failure does. */
  async kill(): Promise<void> {
    const exited = once(this.process, "exit");
    if (this.#signal("SIGKILL") && this.process.exitCode === null) await exited;
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exited = once(this.process, "exit");
      this.#signal("SIGTERM");
      await Promise.race([exited, sleep(5000)]);
    }
    this.#signal("SIGKILL");
  }

  /** False where nothing of it is left. */
  #signal(signal: NodeJS.Signals): boolean {
    try {
      return this.process.pid !== undefined && process.kill(-this.process.pid, signal);
    } catch {
      return false;
    }
  }
}

/** A real Ray on free ports: a head, and further nodes on demand. */
export class RayServer {
  readonly dashboardUrl: string;
  readonly #port: number;
  readonly #nodes: RayNode[];
  readonly #folder: string;

  private constructor(dashboardUrl: string, port: number, head: RayNode, folder: string) {
    this.dashboardUrl = dashboardUrl;
    this.#port = port;
    this.#nodes = [head];
    this.#folder = folder;
  }

  static async start(numCpus = 2): Promise<RayServer> {
    // sockets in it have paths of at most 107 bytes
    const folder = await mkdtemp(join(tmpdir(), "ray-"));
    const [port = 0, clientPort, dashboardPort, agentPort] = await freePorts(4);
    const head = new RayNode([
      "--head",
      `--num-cpus=${numCpus}`,
      "--dashboard-host=127.0.0.1",
      `--temp-dir=${folder}`,
      `--port=${port}`,
      `--ray-client-server-port=${clientPort}`,
      `--dashboard-port=${dashboardPort}`,
      `--dashboard-agent-listen-port=${agentPort}`,
    ]);
    const server = new RayServer(`http://127.0.0.1:${dashboardPort}`, port, head, folder);
    await server.#until(head, async () => (await fetch(`${server.dashboardUrl}/api/jobs/`)).ok);
    return server;
  }

  /** A second raylet, as another machine would run it. */
  async addNode(numCpus: number): Promise<RayNode> {
    const [agentPort] = await freePorts(1);
    const before = await this.#numNodes();
    const node = new RayNode([
      `--address=127.0.0.1:${this.#port}`,
      `--num-cpus=${numCpus}`,
      `--dashboard-agent-listen-port=${agentPort}`,
    ]);
    this.#nodes.push(node);
    await this.#until(node, async () => (await this.#numNodes()) > before);
    return node;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.toReversed().map((node) => node.stop()));
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #numNodes(): Promise<number> {
    const answer = await fetch(`${this.dashboardUrl}/nodes?view=summary`);
    const { data } = (await answer.json()) as { data: { summary: { raylet: { state: string } }[] } };
    return data.summary.filter(({ raylet }) => raylet.state === "ALIVE").length;
  }

  async #until(node: RayNode, holds: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + startTimeoutMs;
    while (!(await holds().catch(() => false))) {
      if (Date.now() > deadline || node.process.exitCode !== null) {
        await this.stop();
        throw new TypeError("Ray did not start");
      }
      await sleep(200);
    }
  }
}
