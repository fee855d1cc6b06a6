import { OctavoError } from "@octavo/protocol";
import type { EvaluatorSpec, Sample } from "../../evaluators/evaluator.js";
import type { ScoredCase } from "../runner.js";
import { EvaluatorThread } from "./evaluator-thread.js";

interface ThreadPoolOptions {
  readonly threads: number;
  /** For one batch; what takes longer is stopped, and then tried pair by pair. */
  readonly timeoutMs: number;
  readonly modules: readonly string[];
}

/** Threads that score batches. A sample that kills its thread or never ends costs its own score and no other. */
export class ThreadPool {
  readonly #threads: readonly EvaluatorThread[];
  readonly #idle: EvaluatorThread[];
  readonly #waiting: ((thread: EvaluatorThread) => void)[] = [];

  constructor({ threads, timeoutMs, modules }: ThreadPoolOptions) {
    this.#threads = Array.from({ length: threads }, () => new EvaluatorThread({ modules }, timeoutMs));
    this.#idle = [...this.#threads];
  }

  get size(): number {
    return this.#threads.length;
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async score(
    samples: readonly Sample[],
    specs: readonly EvaluatorSpec[],
    signal: AbortSignal,
  ): Promise<readonly ScoredCase[]> {
    if (specs.length === 0) return [];
    const thread = await this.#take();
    try {
      return await thread.perform({ samples, specs }, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      const error = OctavoError.from(thrown);
      if (error.code !== "deadline_exceeded" && error.code !== "runner_unavailable") throw error;
      return await this.#scoreApart(thread, samples, specs, error, signal);
    } finally {
      this.#give(thread);
    }
  }

  /** Finds the pair at fault, which fails, and scores the others. */
  async #scoreApart(
    thread: EvaluatorThread,
    samples: readonly Sample[],
    specs: readonly EvaluatorSpec[],
    error: OctavoError,
    signal: AbortSignal,
  ): Promise<readonly ScoredCase[]> {
    const [sample] = samples;
    const [spec] = specs;
    if (samples.length === 1 && specs.length === 1 && sample !== undefined && spec !== undefined) {
      const score = { status: "failed", code: error.code, reason: error.message } as const;
      return [{ caseId: sample.case.id, evaluator: spec.as ?? spec.name, score }];
    }
    const parts =
      samples.length > 1
        ? halves(samples).map((half) => ({ samples: half, specs }))
        : halves(specs).map((half) => ({ samples, specs: half }));
    const rows: ScoredCase[] = [];
    for (const part of parts) {
      try {
        rows.push(...(await thread.perform(part, signal)));
      } catch (thrown) {
        signal.throwIfAborted();
        rows.push(
          ...(await this.#scoreApart(thread, part.samples, part.specs, OctavoError.from(thrown), signal)),
        );
      }
    }
    return rows;
  }

  #take(): Promise<EvaluatorThread> {
    const thread = this.#idle.pop();
    return thread === undefined
      ? new Promise((resolve) => void this.#waiting.push(resolve))
      : Promise.resolve(thread);
  }

  #give(thread: EvaluatorThread): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(thread);
    else next(thread);
  }
}

function halves<Item>(items: readonly Item[]): (readonly Item[])[] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
