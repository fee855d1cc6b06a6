import type { RunOptions, ScoredCase } from "./runner.js";

/** Tells a run's listener how many pairs are done and how many of them failed. */
export class ProgressCount {
  readonly #options: RunOptions;
  #done = 0;
  #failed = 0;

  constructor(options: RunOptions) {
    this.#options = options;
  }

  count(row: ScoredCase): void {
    this.#done++;
    if (row.score.status === "failed") this.#failed++;
    this.#options.onProgress?.({ done: this.#done, failed: this.#failed, total: undefined });
  }
}
