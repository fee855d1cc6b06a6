import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { freePort } from "@octavo/protocol/free-ports";

/** Whether this machine has a redis-server to test with. */
export const hasRedis = spawnSync("redis-server", ["--version"]).status === 0;

/** A real Redis on a free port, with nothing on disk. */
export class RedisServer {
  readonly port: number;
  readonly #folder: string;
  #process: ChildProcess;

  private constructor(port: number, folder: string) {
    this.port = port;
    this.#folder = folder;
    this.#process = this.#spawn();
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  static async start(): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), await mkdtemp(join(tmpdir(), "octavo-redis-")));
    await server.#answers();
    return server;
  }

  /** Ends it without warning and starts it again on the same port, empty. */
  async restartEmpty(): Promise<void> {
    await this.#kill();
    this.#process = this.#spawn();
    await this.#answers();
  }

  async stop(): Promise<void> {
    await this.#kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #kill(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await exited;
  }

  #spawn(): ChildProcess {
    const settings = ["--port", String(this.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    return spawn("redis-server", [...settings, "--dir", this.#folder], { stdio: "ignore" });
  }

  async #answers(): Promise<void> {
    const redis = new Redis(this.url, {
      lazyConnect: true,
      maxRetriesPerRequest: null,
      retryStrategy: () => 50,
    });
    redis.on("error", () => undefined);
    await redis.connect().catch(() => undefined);
    while ((await redis.ping().catch(() => "")) !== "PONG") await sleep(50);
    redis.disconnect();
  }
}
