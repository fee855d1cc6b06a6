import { Worker } from "node:worker_threads";
import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol";
import type { ScoredCase } from "../runner.js";
import type { ThreadData, ThreadReply, ThreadTask } from "./messages.js";

/** For loading the table and the user's modules, which is not yet scoring. */
const startTimeoutMs = 60_000;

/** One thread, which performs one task at a time. It is started by its first task, and again after it died. */
export class EvaluatorThread {
  readonly #data: ThreadData;
  readonly #timeoutMs: number;
  #worker: Worker | undefined;
  #isReady = false;

  constructor(data: ThreadData, timeoutMs: number) {
    this.#data = data;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Rejects with an OctavoError: `deadline_exceeded` when it took too long, `runner_unavailable` when the thread died, what
   * the specs are refused with; with the signal's reason when that is aborted. Whatever is still running dies with it.
   */
  async perform(task: ThreadTask, signal: AbortSignal): Promise<readonly ScoredCase[]> {
    signal.throwIfAborted();
    const worker = (this.#worker ??= this.#start());
    const { promise, resolve, reject } = deferred<Exclude<ThreadReply, { kind: "ready" }>>();
    const died = (cause: unknown): void =>
      reject(
        new OctavoError("runner_unavailable", `a scoring thread stopped: ${describe(cause)}`, { cause }),
      );
    const onExit = (code: number): void => died(`it exited with ${code}`);
    const onAbort = (): void => reject(signal.reason);
    const expireAfter = (timeoutMs: number): NodeJS.Timeout =>
      setTimeout(
        () => reject(new OctavoError("deadline_exceeded", `scoring took longer than ${timeoutMs} ms`)),
        timeoutMs,
      );
    let timer = expireAfter(this.#isReady ? this.#timeoutMs : startTimeoutMs);
    const onReply = (reply: ThreadReply): void => {
      if (reply.kind !== "ready") return resolve(reply);
      this.#isReady = true;
      clearTimeout(timer);
      timer = expireAfter(this.#timeoutMs);
    };
    worker.on("message", onReply).on("error", died).on("messageerror", died).on("exit", onExit);
    const forget = whenAborted(signal, onAbort);
    try {
      worker.postMessage(task, []);
      const reply = await promise;
      if (reply.kind === "rows") return reply.rows;
      throw new OctavoError("invalid_option", reply.message);
    } catch (error) {
      await this.close();
      throw error;
    } finally {
      clearTimeout(timer);
      forget();
      worker.off("message", onReply).off("error", died).off("messageerror", died).off("exit", onExit);
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #start(): Worker {
    this.#isReady = false;
    const worker = new Worker(new URL("thread.js", import.meta.url), { workerData: this.#data });
    // an idle thread keeps no process alive, and one that dies between tasks is replaced
    worker.unref();
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }
}

interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

function deferred<Value>(): Deferred<Value> {
  let resolve!: Deferred<Value>["resolve"];
  let reject!: Deferred<Value>["reject"];
  const promise = new Promise<Value>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message.slice(0, 200) : String(cause);
}
