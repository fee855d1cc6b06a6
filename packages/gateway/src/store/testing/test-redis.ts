import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

/** Why tests that need a redis-server are skipped; false where this machine has one. */
export const withoutRedis: string | false =
  spawnSync("redis-server", ["--version"]).status === 0 ? false : "redis-server is not installed";

/** A redis-server of its own, which keeps nothing on disk. */
export class TestRedis {
  readonly #port: number;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  private constructor(port: number, folder: string) {
    this.#port = port;
    this.#folder = folder;
  }

  static async start(): Promise<TestRedis> {
    const redis = new TestRedis(await unusedPort(), await mkdtemp(join(tmpdir(), "octavo-store-")));
    await redis.begin();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  /** On the same port as before, and empty. */
  async begin(...settings: string[]): Promise<void> {
    const where = ["--port", String(this.#port), "--bind", "127.0.0.1", "--dir", this.#folder];
    this.#process = spawn("redis-server", [...where, "--save", "", "--appendonly", "no", ...settings], {
      stdio: "ignore",
    });
    const client = new Redis(this.url, { lazyConnect: true, retryStrategy: () => null });
    client.on("error", () => undefined);
    while (
      (await client.connect().then(
        () => client.ping(),
        () => "",
      )) !== "PONG"
    )
      await sleep(20);
    client.disconnect();
  }

  /** Without a chance to say goodbye. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running === undefined || running.exitCode !== null) return;
    const exited = once(running, "exit");
    running.kill("SIGKILL");
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function unusedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
