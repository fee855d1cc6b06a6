import { Worker } from "node:worker_threads";
import { type ErrorCode, OctavoError } from "@octavo/protocol";
import type { Vocabulary } from "./automaton/vocabulary.js";
import type { RuleSet } from "./node.js";

export interface WorkerStart {
  /** The vocabulary, or what the worker makes it of and sends back first. */
  readonly source: Vocabulary | { readonly bytes: Uint8Array; readonly starts: Int32Array };
  readonly specialTokens: readonly string[];
}

export interface CompileTask {
  readonly taskId: number;
  /** JSON of a `GrammarSpec`. */
  readonly spec: string;
}

export type CompileReply =
  | { readonly vocabulary: Vocabulary }
  | { readonly taskId: number; readonly rules: RuleSet }
  | {
      readonly taskId: number;
      readonly failure: { readonly code: ErrorCode; readonly message: string; readonly param?: string };
    };

interface Pending {
  readonly task: CompileTask;
  readonly resolve: (rules: RuleSet) => void;
  readonly reject: (error: OctavoError) => void;
}

/** A worker that had nothing to do for this long is ended. */
const idleMs = 60_000;
const memoryMb = 512;

/**
 * One worker thread that compiles grammars, one at a time, the shortest of those that wait first. A grammar that takes
 * longer than it may, or all of the thread's memory, is refused and the thread replaced; the others go on. Keeps the
 * process alive only while there are grammars to compile.
 */
export class CompileWorker {
  readonly #timeoutMs: number;
  readonly #onVocabulary: (vocabulary: Vocabulary) => void;
  readonly #waiting = new Set<Pending>();
  #start: WorkerStart;
  #current: Pending | undefined;
  #worker: Worker | undefined;
  #isReady = false;
  #nextTaskId = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(start: WorkerStart, timeoutMs: number, onVocabulary: (vocabulary: Vocabulary) => void) {
    this.#start = start;
    this.#timeoutMs = timeoutMs;
    this.#onVocabulary = onVocabulary;
  }

  /** What is aborted before its turn has come is not compiled: throws `request_cancelled`. */
  compile(spec: string, signal: AbortSignal): Promise<RuleSet> {
    return new Promise((resolve, reject) => {
      const pending: Pending = { task: { taskId: this.#nextTaskId++, spec }, resolve, reject };
      this.#waiting.add(pending);
      const leave = (): void => {
        if (this.#waiting.delete(pending)) reject(compilingCancelled());
      };
      if (signal.aborted) leave();
      else {
        signal.addEventListener("abort", leave, { once: true });
        this.#next();
      }
    });
  }

  [Symbol.dispose](): void {
    const error = new OctavoError("shutting_down", "The grammar compiler was closed before it finished.");
    const lost = [...(this.#current === undefined ? [] : [this.#current]), ...this.#waiting];
    this.#waiting.clear();
    this.#end();
    for (const pending of lost) pending.reject(error);
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const worker = (this.#worker ??= this.#open());
    if (!this.#isReady) return;
    let shortest: Pending | undefined;
    for (const pending of this.#waiting) {
      if (shortest === undefined || pending.task.spec.length < shortest.task.spec.length) shortest = pending;
    }
    clearTimeout(this.#timer);
    if (shortest === undefined) {
      worker.unref();
      this.#timer = setTimeout(() => this.#end(), idleMs);
      this.#timer.unref();
      return;
    }
    this.#waiting.delete(shortest);
    this.#current = shortest;
    worker.ref();
    worker.postMessage(shortest.task, []);
    this.#timer = setTimeout(
      () => this.#giveUp(tooLarge(`took more than ${this.#timeoutMs} ms to compile`)),
      this.#timeoutMs,
    );
  }

  #open(): Worker {
    const worker = new Worker(new URL("./compile-worker.js", import.meta.url), {
      workerData: this.#start,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, stackSizeMb: 4 },
    });
    if ("trie" in this.#start.source) this.#isReady = true;
    worker.on("message", (reply: CompileReply) => {
      if (this.#worker !== worker) return;
      if ("vocabulary" in reply) {
        this.#start = { ...this.#start, source: reply.vocabulary };
        this.#isReady = true;
        this.#onVocabulary(reply.vocabulary);
      } else {
        const current = this.#current;
        if (current?.task.taskId !== reply.taskId) return;
        this.#current = undefined;
        if ("rules" in reply) current.resolve(reply.rules);
        else {
          const { code, message, param } = reply.failure;
          current.reject(new OctavoError(code, message, param === undefined ? {} : { param }));
        }
      }
      this.#next();
    });
    worker.on("error", (error: NodeJS.ErrnoException) => {
      if (this.#worker !== worker) return;
      const outOfMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      this.#giveUp(
        outOfMemory
          ? tooLarge(`needs more than ${memoryMb} MB of memory`)
          : new OctavoError("internal_error", `The grammar compiler failed: ${error.message}`, {
              cause: error,
            }),
      );
    });
    worker.on("exit", () => {
      if (this.#worker === worker)
        this.#giveUp(new OctavoError("internal_error", "The grammar compiler ended before it answered."));
    });
    return worker;
  }

  /** Refuses what is being compiled and goes on with the others in a new thread; all of them when it could not even start. */
  #giveUp(error: OctavoError): void {
    const lost = this.#current === undefined ? [...this.#waiting] : [this.#current];
    for (const pending of lost) this.#waiting.delete(pending);
    this.#end();
    for (const pending of lost) pending.reject(error);
    if (this.#waiting.size > 0) this.#next();
  }

  #end(): void {
    const worker = this.#worker;
    clearTimeout(this.#timer);
    this.#worker = undefined;
    this.#current = undefined;
    this.#isReady = false;
    void worker?.terminate();
  }
}

export function compilingCancelled(): OctavoError {
  return new OctavoError("request_cancelled", "Compiling the constraint was cancelled.");
}

function tooLarge(what: string): OctavoError {
  return new OctavoError("invalid_request", `The constraint ${what}; give a simpler one.`);
}
