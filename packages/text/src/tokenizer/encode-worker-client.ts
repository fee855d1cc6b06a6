import { Worker } from "node:worker_threads";
import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError, type ErrorCode } from "@octavo/protocol/errors";
import type { TokenizerSpecification } from "./specification.js";
import type { EncodeOptions } from "./tokenizer.js";

export interface EncodeTextTask {
  readonly taskId: number;
  readonly text: string;
  readonly addSpecialTokens: boolean;
  readonly maxTokens: number;
}

export type EncodeReply =
  | { readonly taskId: number; readonly ids: Int32Array }
  | { readonly taskId: number; readonly failure: { readonly code: ErrorCode; readonly message: string } };

interface Pending {
  readonly task: EncodeTextTask;
  readonly tenant: string;
  readonly resolve: (ids: Int32Array) => void;
  readonly reject: (error: OctavoError) => void;
}

/** A worker that had nothing to do for this long is ended. */
const idleMs = 60_000;

/** A longer text (UTF-16 units) is not encoded to its end when nobody waits for it: the worker is replaced, which costs less. */
const abandonedLength = 512 * 1024;

/**
 * One worker thread that encodes long texts, started for the first one. It encodes one text at a time. Tenants take turns,
 * and the shortest waiting text of a tenant comes first, so a text of megabytes delays only those that arrive while it is
 * encoded. It keeps the process alive only while it has texts; when it dies the text that it was encoding fails with
 * `internal_error`, and the next text starts another.
 */
export class EncodeWorker {
  readonly #specification: TokenizerSpecification;
  readonly #waiting = new Set<Pending>();
  /** What the worker is encoding, even if its caller has given up. */
  #current: Pending | undefined;
  #worker: Worker | undefined;
  #nextTaskId = 0;
  /** The last turn of each tenant that has texts here. */
  readonly #turns = new Map<string, number>();
  #numTurns = 0;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(specification: TokenizerSpecification) {
    this.#specification = specification;
  }

  encode(text: string, options: EncodeOptions): Promise<Int32Array> {
    const { signal, addSpecialTokens = true, maxTokens = Infinity, tenant = "" } = options;
    if (signal?.aborted === true) return Promise.reject(cancelled());
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        task: { taskId: this.#nextTaskId++, text, addSpecialTokens, maxTokens },
        tenant,
        resolve: (ids) => (forget(), resolve(ids)),
        reject: (error) => (forget(), reject(error)),
      };
      const forget = whenAborted(signal, () => {
        this.#waiting.delete(pending);
        pending.reject(cancelled());
        if (this.#current !== pending || text.length <= abandonedLength) return;
        const worker = this.#worker;
        this.#forgetWorker();
        void worker?.terminate();
        this.#next();
      });
      this.#waiting.add(pending);
      this.#next();
    });
  }

  /** The next text starts another worker. */
  [Symbol.dispose](): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    const lost = [...(this.#current === undefined ? [] : [this.#current]), ...this.#waiting];
    this.#waiting.clear();
    this.#forgetWorker();
    const error = new OctavoError("shutting_down", "The tokenizer was closed before it finished.");
    for (const pending of lost) pending.reject(error);
    void worker.terminate();
  }

  /** Gives an idle worker the waiting text whose turn it is; without one the worker may end. */
  #next(): void {
    if (this.#current !== undefined) return;
    const chosen = this.#choose();
    if (chosen === undefined) {
      this.#turns.clear();
      this.#rest();
      return;
    }
    const worker = (this.#worker ??= this.#start());
    clearTimeout(this.#idleTimer);
    this.#waiting.delete(chosen);
    this.#turns.set(chosen.tenant, (this.#numTurns += 1));
    this.#current = chosen;
    worker.ref();
    worker.postMessage(chosen.task, []);
  }

  #choose(): Pending | undefined {
    let best: Pending | undefined;
    const turnOf = ({ tenant }: Pending): number => this.#turns.get(tenant) ?? 0;
    for (const pending of this.#waiting) {
      const order = best === undefined ? -1 : turnOf(pending) - turnOf(best);
      if (order < 0 || (order === 0 && pending.task.text.length < best!.task.text.length)) best = pending;
    }
    return best;
  }

  #start(): Worker {
    const worker = new Worker(new URL("./encode-worker.js", import.meta.url), {
      workerData: this.#specification,
      execArgv: [],
      // what it makes is dropped at once: by default this part of its heap alone grows to 48 MB
      resourceLimits: { maxYoungGenerationSizeMb: 12 },
    });
    worker.on("message", (reply: EncodeReply) => {
      const current = this.#current;
      if (current?.task.taskId !== reply.taskId) return;
      this.#current = undefined;
      if ("ids" in reply) current.resolve(reply.ids);
      else current.reject(new OctavoError(reply.failure.code, reply.failure.message));
      this.#next();
    });
    worker.on("error", (cause) => this.#lose(worker, died(cause)));
    worker.on("exit", () => this.#lose(worker, died(undefined)));
    return worker;
  }

  #rest(): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.unref();
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => {
      this.#worker = undefined;
      void worker.terminate();
    }, idleMs);
    this.#idleTimer.unref();
  }

  /** What it was encoding fails; texts that wait go to another. */
  #lose(worker: Worker, error: OctavoError): void {
    if (this.#worker !== worker) return;
    const current = this.#current;
    this.#forgetWorker();
    current?.reject(error);
    if (current !== undefined) this.#next();
  }

  #forgetWorker(): void {
    clearTimeout(this.#idleTimer);
    this.#worker = undefined;
    this.#current = undefined;
  }
}

function died(cause: unknown): OctavoError {
  return new OctavoError(
    "internal_error",
    "The tokenizer's worker thread ended before it finished; try the request again.",
    { cause },
  );
}

function cancelled(): OctavoError {
  return new OctavoError("request_cancelled", "Tokenisation was cancelled.");
}
