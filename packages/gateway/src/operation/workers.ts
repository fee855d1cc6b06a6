import cluster, { type Worker } from "node:cluster";
import type { GatewayConfig } from "../config/schema.js";
import { AdminListener } from "../http/admin-listener.js";
import { mergeMetrics } from "./merged-metrics.js";

/** What the first process says to its workers. */
interface Order {
  readonly octavo: "reload" | "stop" | "metrics";
}

/** A worker's answer to `metrics`. */
interface SaidMetrics {
  readonly octavoMetrics: string;
}

/** A worker that does not say its metrics by then counts with those it said last. */
const saidWithinMs = 2000;

/** Workers that share the public port. One that dies is replaced; orders go to all of them. */
export class GatewayWorkers {
  readonly #onProblem: (message: string) => void;
  /** What each worker said last, by its id; of those that ended, too. */
  readonly #said = new Map<number, string>();
  /** Of all workers that ended, merged. */
  #ended: string[] = [];
  #isStopping = false;
  readonly #count: number;
  #admin: AdminListener | undefined;

  /** `onProblem` is told of workers that died. */
  constructor(count: number, onProblem: (message: string) => void) {
    this.#onProblem = onProblem;
    this.#count = count;
    for (let index = 0; index < count; index += 1) this.#fork(index, Date.now());
  }

  reload(): void {
    this.#send({ octavo: "reload" });
  }

  /** `GET /metrics` of all workers together on the admin port behind theirs; returns its address. */
  async serveMetrics(admin: NonNullable<GatewayConfig["admin"]>): Promise<string> {
    this.#admin = new AdminListener({
      gateway: undefined,
      admin,
      metrics: () => this.#metrics(),
      reload: () => Promise.resolve(this.reload()),
    });
    return (await this.#admin.listen(admin.port === 0 ? 0 : admin.port + this.#count)).url;
  }

  /** As one process would have counted. */
  async #metrics(): Promise<string> {
    const workers = workersOf();
    await Promise.all(workers.map((worker) => this.#askMetrics(worker)));
    return mergeMetrics(
      workers.flatMap(({ id }) => this.#said.get(id) ?? []),
      this.#ended,
    );
  }

  async #askMetrics(worker: Worker): Promise<void> {
    if (!worker.isConnected()) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        worker.off("message", onMessage);
        worker.off("exit", finish);
        resolve();
      };
      const onMessage = (message: Partial<SaidMetrics> | null): void => {
        if (typeof message?.octavoMetrics !== "string") return;
        this.#said.set(worker.id, message.octavoMetrics);
        finish();
      };
      const timer = setTimeout(finish, saidWithinMs);
      worker.on("message", onMessage);
      worker.once("exit", finish);
      worker.send({ octavo: "metrics" } satisfies Order);
    });
  }

  /** Resolves when all have drained and ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#admin?.close();
    const ended = workersOf().map(
      (worker) => new Promise<void>((resolve) => worker.once("exit", () => resolve())),
    );
    this.#send({ octavo: "stop" });
    await Promise.all(ended);
  }

  #fork(index: number, startedMs: number): void {
    const worker = cluster.fork({ OCTAVO_GATEWAY_WORKER: String(index) });
    worker.once("exit", (code, signal) => {
      const last = this.#said.get(worker.id);
      this.#said.delete(worker.id);
      if (last !== undefined) this.#ended = [mergeMetrics([], [...this.#ended, last])];
      if (this.#isStopping) return;
      this.#onProblem(`worker ${index} ended with ${signal ?? code}; starting another`);
      // one that cannot start must not be started all the time
      const waitMs = Date.now() - startedMs < 5000 ? 1000 : 0;
      setTimeout(() => {
        if (!this.#isStopping) this.#fork(index, Date.now());
      }, waitMs);
    });
  }

  #send(order: Order): void {
    for (const worker of workersOf()) worker.send(order);
  }
}

function workersOf(): readonly Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

/** The number of this worker; undefined in the first process. */
export function workerIndex(): number | undefined {
  return cluster.isWorker ? Number(process.env["OCTAVO_GATEWAY_WORKER"] ?? 0) : undefined;
}

/** Follows the first process's orders. */
export function onWorkerOrder(handlers: {
  readonly reload: () => void;
  readonly stop: () => void;
  readonly metrics: () => string;
}): void {
  process.on("message", (message: unknown) => {
    const order = (message as Partial<Order> | null)?.octavo;
    if (order === "metrics") process.send?.({ octavoMetrics: handlers.metrics() } satisfies SaidMetrics);
    else if (order !== undefined) handlers[order]();
  });
  // a worker outlives its first process only to finish what it has
  process.on("disconnect", () => handlers.stop());
}
