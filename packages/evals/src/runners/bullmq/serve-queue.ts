import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import type { EvaluatorServices } from "../../evaluators/registry.js";
import { LocalRunner } from "../local-runner.js";
import { BullMqWorker, type BullMqWorkerOptions } from "./bullmq-worker.js";

/** What `octavo eval worker` runs with. */
export interface ServeQueueOptions extends Omit<BullMqWorkerOptions, "table" | "runner"> {
  readonly services?: EvaluatorServices;
  /** URLs of modules that export `evaluators`. */
  readonly modules?: readonly string[];
  /** That compute scores. */
  readonly threads?: number;
  /** Called when jobs are taken. */
  readonly onReady?: () => void;
}

/**
 * Takes jobs of a queue until the signal is aborted, then finishes those it has. Scores are computed on threads, so that
 * this one is always free to renew locks.
 */
export async function serveQueue(options: ServeQueueOptions, signal: AbortSignal): Promise<void> {
  const { modules = [], threads, onReady, ...worker } = options;
  const table = await loadEvaluatorTable(modules);
  const runner = new LocalRunner({ modules, threads: threads ?? "auto" });
  try {
    const working = await BullMqWorker.start({ ...worker, table, runner });
    onReady?.();
    if (!signal.aborted) {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    await working.close();
  } finally {
    await runner.close();
  }
}
