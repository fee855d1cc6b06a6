import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "../../../http/free-ports.js";

/** The `ray` command: of the virtual environment that `RAY_VENV` names, or the machine's own. */
const rayCommand =
  process.env["RAY_VENV"] === undefined ? "ray" : join(process.env["RAY_VENV"], "bin", "ray");

/** Whether this machine has a Ray to test with. */
export const hasRay = spawnSync(rayCommand, ["--version"]).status === 0;

const startTimeoutMs = 90_000;

/** A real Ray of one node on free ports. */
export class RayServer {
  readonly dashboardUrl: string;
  readonly #process: ChildProcess;
  readonly #folder: string;

  private constructor(dashboardUrl: string, process: ChildProcess, folder: string) {
    this.dashboardUrl = dashboardUrl;
    this.#process = process;
    this.#folder = folder;
  }

  static async start(): Promise<RayServer> {
    // sockets in it have paths of at most 107 bytes
    const folder = await mkdtemp(join(tmpdir(), "ray-"));
    const [port, clientPort, dashboardPort, agentPort] = await freePorts(4);
    const child = spawn(
      rayCommand,
      [
        "start",
        "--head",
        "--block",
        "--disable-usage-stats",
        "--num-cpus=2",
        "--node-ip-address=127.0.0.1",
        "--dashboard-host=127.0.0.1",
        `--temp-dir=${folder}`,
        `--port=${port}`,
        `--ray-client-server-port=${clientPort}`,
        `--dashboard-port=${dashboardPort}`,
        `--dashboard-agent-listen-port=${agentPort}`,
        "--min-worker-port=0",
        "--max-worker-port=0",
        "--object-store-memory=100000000",
      ],
      // a group of its own, so that it ends with all that it started
      { stdio: "ignore", detached: true },
    );
    const server = new RayServer(`http://127.0.0.1:${dashboardPort}`, child, folder);
    const deadline = Date.now() + startTimeoutMs;
    while (!(await server.#answers())) {
      if (Date.now() > deadline || child.exitCode !== null) {
        await server.stop();
        throw new TypeError("Ray did not start");
      }
      await sleep(200);
    }
    return server;
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.pid !== undefined) {
      const exited = once(this.#process, "exit");
      process.kill(-this.#process.pid, "SIGTERM");
      await Promise.race([exited, sleep(5000)]);
      try {
        process.kill(-this.#process.pid, "SIGKILL");
      } catch {
        // nothing of it is left
      }
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.dashboardUrl}/api/jobs/`)).ok;
    } catch {
      return false;
    }
  }
}
