import { Worker } from "node:worker_threads";
import { type ErrorCode, OctavoError } from "@octavo/protocol/errors";
import type { GrammarVocabulary } from "./automaton/vocabulary.js";
import { compilingCancelled } from "./compiling-cancelled.js";
import type { RuleSet } from "./node.js";

export interface WorkerStart {
  /** The vocabulary, or what the worker makes it of and sends back first. */
  readonly source: GrammarVocabulary | { readonly bytes: Uint8Array; readonly starts: Int32Array };
  readonly specialTokens: readonly string[];
  /** Steps that compiling and trying out one grammar may take. */
  readonly maxWork: number;
}

export interface CompileTask {
  readonly taskId: number;
  /** JSON of a `GrammarSpec`. */
  readonly spec: string;
}

export type CompileReply =
  | { readonly vocabulary: GrammarVocabulary }
  | { readonly taskId: number; readonly rules: RuleSet }
  | {
      readonly taskId: number;
      readonly failure: { readonly code: ErrorCode; readonly message: string; readonly param?: string };
    };

interface Running {
  readonly taskId: number;
  readonly resolve: (rules: RuleSet) => void;
  readonly reject: (error: OctavoError) => void;
}

interface Preparing {
  readonly resolve: (vocabulary: GrammarVocabulary) => void;
  readonly reject: (error: OctavoError) => void;
}

/** A thread that had nothing to do for this long is ended. */
const idleMs = 60_000;
const memoryMb = 512;

/**
 * A worker thread that compiles one grammar at a time. One that takes more steps than it may, or all of the thread's memory, is
 * refused. A thread that does not answer is replaced, and its grammar fails with `overloaded`: a busy machine is no fault of the
 * grammar. Keeps the process alive only while there is something to do.
 */
export class CompileThread {
  readonly #start: () => WorkerStart;
  readonly #timeoutMs: number;
  #worker: Worker | undefined;
  #preparing: Preparing | undefined;
  #running: Running | undefined;
  #nextTaskId = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(start: () => WorkerStart, timeoutMs: number) {
    this.#start = start;
    this.#timeoutMs = timeoutMs;
  }

  get isFree(): boolean {
    return this.#preparing === undefined && this.#running === undefined;
  }

  /** Makes the vocabulary of a start that has none. The thread is free. */
  prepare(): Promise<GrammarVocabulary> {
    return new Promise((resolve, reject) => {
      this.#preparing = { resolve, reject };
      this.#open();
    });
  }

  /** The thread is free, and its start has a vocabulary. */
  run(spec: string): Promise<RuleSet> {
    return new Promise((resolve, reject) => {
      const task: CompileTask = { taskId: this.#nextTaskId++, spec };
      this.#running = { taskId: task.taskId, resolve, reject };
      const worker = this.#open();
      worker.ref();
      worker.postMessage(task, []);
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#end(noAnswer(this.#timeoutMs)), this.#timeoutMs);
    });
  }

  /** Ends what it does now, which fails with `request_cancelled`; the next grammar gets another thread. */
  cancel(): void {
    this.#end(compilingCancelled());
  }

  [Symbol.dispose](): void {
    this.#end(closed());
  }

  #open(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(new URL("./compile-worker.js", import.meta.url), {
      workerData: this.#start(),
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 12, stackSizeMb: 4 },
    });
    this.#worker = worker;
    worker.on("message", (reply: CompileReply) => {
      if (this.#worker === worker) this.#take(reply, worker);
    });
    worker.on("error", (error: NodeJS.ErrnoException) => {
      if (this.#worker !== worker) return;
      const outOfMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      this.#end(
        outOfMemory
          ? tooLarge(`needs more than ${memoryMb} MB of memory`)
          : new OctavoError("internal_error", `The grammar compiler failed: ${error.message}`, {
              cause: error,
            }),
      );
    });
    worker.on("exit", () => {
      if (this.#worker === worker)
        this.#end(new OctavoError("internal_error", "The grammar compiler ended before it answered."));
    });
    return worker;
  }

  #take(reply: CompileReply, worker: Worker): void {
    if ("vocabulary" in reply) {
      const preparing = this.#preparing;
      this.#preparing = undefined;
      this.#rest(worker);
      preparing?.resolve(reply.vocabulary);
      return;
    }
    const running = this.#running;
    if (running?.taskId !== reply.taskId) return;
    this.#running = undefined;
    this.#rest(worker);
    if ("rules" in reply) running.resolve(reply.rules);
    else {
      const { code, message, param } = reply.failure;
      running.reject(new OctavoError(code, message, param === undefined ? {} : { param }));
    }
  }

  #rest(worker: Worker): void {
    worker.unref();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(closed()), idleMs);
    this.#timer.unref();
  }

  /** Ends the worker; what it was doing fails with `error`. */
  #end(error: OctavoError): void {
    const lost = this.#running ?? this.#preparing;
    const worker = this.#worker;
    clearTimeout(this.#timer);
    this.#worker = undefined;
    this.#running = undefined;
    this.#preparing = undefined;
    void worker?.terminate();
    lost?.reject(error);
  }
}

export function closed(): OctavoError {
  return new OctavoError("shutting_down", "The grammar compiler was closed before it finished.");
}

function noAnswer(timeoutMs: number): OctavoError {
  const message = `The constraint was not compiled within ${timeoutMs} ms, as the machine is busy; try again later.`;
  return new OctavoError("overloaded", message);
}

function tooLarge(what: string): OctavoError {
  return new OctavoError("invalid_request", `The constraint ${what}; give a simpler one.`);
}
