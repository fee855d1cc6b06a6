import { Worker } from "node:worker_threads";
import { OctavoError, type ErrorCode } from "@octavo/protocol";
import type { TokenizerSpecification } from "./specification.js";
import type { EncodeOptions } from "./tokenizer.js";

export interface EncodeTask {
  readonly taskId: number;
  readonly text: string;
  readonly addSpecialTokens: boolean;
}

export type EncodeReply =
  | { readonly taskId: number; readonly ids: Int32Array }
  | { readonly taskId: number; readonly failure: { readonly code: ErrorCode; readonly message: string } };

interface Pending {
  readonly resolve: (ids: Int32Array) => void;
  readonly reject: (error: OctavoError) => void;
}

/** A worker that had nothing to do for this long is ended. */
const idleMs = 60_000;

/**
 * One worker thread that encodes long texts, started when the first comes. It keeps the process alive only while a
 * text is being encoded; when it dies its texts fail with `internal_error` and the next text starts another.
 */
export class EncodeWorker {
  readonly #specification: TokenizerSpecification;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #nextTaskId = 0;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(specification: TokenizerSpecification) {
    this.#specification = specification;
  }

  encode(text: string, options: EncodeOptions): Promise<Int32Array> {
    const { signal } = options;
    if (signal?.aborted === true) return Promise.reject(cancelled());
    const worker = (this.#worker ??= this.#start());
    const task: EncodeTask = {
      taskId: this.#nextTaskId++,
      text,
      addSpecialTokens: options.addSpecialTokens ?? true,
    };
    clearTimeout(this.#idleTimer);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#settle(task.taskId)?.reject(cancelled());
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const forget = (): void => signal?.removeEventListener("abort", onAbort);
      this.#pending.set(task.taskId, {
        resolve: (ids) => (forget(), resolve(ids)),
        reject: (error) => (forget(), reject(error)),
      });
      worker.ref();
      worker.postMessage(task, []);
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL("./encode-worker.js", import.meta.url), {
      workerData: this.#specification,
      execArgv: [],
    });
    worker.on("message", (reply: EncodeReply) => {
      const pending = this.#settle(reply.taskId);
      if (pending === undefined) return;
      if ("ids" in reply) pending.resolve(reply.ids);
      else pending.reject(new OctavoError(reply.failure.code, reply.failure.message));
    });
    worker.on("error", (cause) => this.#lose(worker, cause));
    worker.on("exit", () => this.#lose(worker, undefined));
    return worker;
  }

  #settle(taskId: number): Pending | undefined {
    const pending = this.#pending.get(taskId);
    if (pending === undefined) return undefined;
    this.#pending.delete(taskId);
    if (this.#pending.size === 0) this.#rest();
    return pending;
  }

  #rest(): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.unref();
    this.#idleTimer = setTimeout(() => {
      this.#worker = undefined;
      void worker.terminate();
    }, idleMs);
    this.#idleTimer.unref();
  }

  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    clearTimeout(this.#idleTimer);
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    const error = new OctavoError(
      "internal_error",
      "The tokenizer's worker thread ended before it finished; try the request again.",
      { cause },
    );
    for (const pending of lost) pending.reject(error);
  }
}

function cancelled(): OctavoError {
  return new OctavoError("request_cancelled", "Tokenisation was cancelled.");
}
