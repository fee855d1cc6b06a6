import cluster, { type Worker } from "node:cluster";

/** What the first process says to its workers. */
type Order = { readonly octavo: "reload" } | { readonly octavo: "stop" };

/** Workers that share the public port. One that dies is replaced; orders go to all of them. */
export class GatewayWorkers {
  readonly #onProblem: (message: string) => void;
  #isStopping = false;

  /** `onProblem` is told of workers that died. */
  constructor(count: number, onProblem: (message: string) => void) {
    this.#onProblem = onProblem;
    for (let index = 0; index < count; index += 1) this.#fork(index, Date.now());
  }

  reload(): void {
    this.#send({ octavo: "reload" });
  }

  /** Resolves when all have drained and ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const ended = workersOf().map(
      (worker) => new Promise<void>((resolve) => worker.once("exit", () => resolve())),
    );
    this.#send({ octavo: "stop" });
    await Promise.all(ended);
  }

  #fork(index: number, startedMs: number): void {
    const worker = cluster.fork({ OCTAVO_GATEWAY_WORKER: String(index) });
    worker.once("exit", (code, signal) => {
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
export function onWorkerOrder(handlers: { readonly reload: () => void; readonly stop: () => void }): void {
  process.on("message", (message: unknown) => {
    const order = (message as Partial<Order> | null)?.octavo;
    if (order !== undefined) handlers[order]();
  });
  // a worker outlives its first process only to finish what it has
  process.on("disconnect", () => handlers.stop());
}
