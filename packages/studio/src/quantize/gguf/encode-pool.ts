import { Worker } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol";
import type { EncodedStretch } from "./encoded-stretch.js";
import type { GgmlTypeName } from "./ggml-types.js";

export interface StretchTask {
  readonly type: GgmlTypeName;
  readonly values: Float32Array;
  /** Importance of each column. */
  readonly importance?: Float32Array | undefined;
}

interface Pending extends StretchTask {
  readonly resolve: (stretch: EncodedStretch) => void;
  readonly reject: (error: OctavoError) => void;
}

/**
 * Threads that search scales. Each encodes one stretch at a time, so the result does not depend on their number. Threads
 * start as they are needed and end when the pool is disposed; a stretch whose thread dies fails with `internal_error`.
 */
export class EncodePool implements Disposable {
  readonly numThreads: number;
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, Pending>();
  readonly #waiting: Pending[] = [];
  #isDisposed = false;

  constructor(numThreads: number) {
    this.numThreads = numThreads;
  }

  /** @param values whole blocks; their memory moves to the thread */
  encode(type: GgmlTypeName, values: Float32Array, importance?: Float32Array): Promise<EncodedStretch> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ type, values, importance, resolve, reject });
      this.#next();
    });
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const worker of [...this.#idle, ...this.#busy.keys()]) void worker.terminate();
    this.#idle.length = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(ended());
  }

  #next(): void {
    const [pending] = this.#waiting;
    const worker = pending === undefined ? undefined : this.#freeWorker();
    if (pending === undefined || worker === undefined) return;
    this.#waiting.shift();
    this.#busy.set(worker, pending);
    const { type, values, importance } = pending;
    const task: StretchTask = { type, values, importance };
    worker.postMessage(task, [values.buffer as ArrayBuffer]);
  }

  #freeWorker(): Worker | undefined {
    const idle = this.#idle.pop();
    if (idle !== undefined || this.#busy.size >= this.numThreads) return idle;
    const worker = new Worker(new URL("./encode-worker.js", import.meta.url));
    let cause: unknown;
    worker.on("message", (stretch: EncodedStretch) => {
      const pending = this.#busy.get(worker);
      this.#busy.delete(worker);
      this.#idle.push(worker);
      pending?.resolve(stretch);
      this.#next();
    });
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      const pending = this.#busy.get(worker);
      this.#busy.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at !== -1) this.#idle.splice(at, 1);
      pending?.reject(ended(cause));
      if (!this.#isDisposed) this.#next();
    });
    return worker;
  }
}

function ended(cause?: unknown): OctavoError {
  return new OctavoError("internal_error", "A thread that encodes weights has ended.", { cause });
}
