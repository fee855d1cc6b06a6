import { OctavoError } from "@octavo/protocol";
import type { Evaluator, Sample } from "../evaluators/evaluator.js";
import { concurrently } from "./concurrently.js";
import type { ScoreJournal } from "./score-journal.js";
import { ProgressCount } from "./progress-count.js";
import type { RunOptions, Runner, ScoredCase } from "./runner.js";
import { pairsOf } from "./sample-streams.js";
import { scorePair } from "./score-pair.js";

export interface InProcessOptions {
  /** Pairs that are scored at a time; judged ones wait for their judge meanwhile. Default 16. */
  readonly concurrency?: number;
  /** Scores of earlier runs, which are not made again; this run's are added. It stays the caller's to close. */
  readonly journal?: ScoreJournal;
}

/** Scores in this process, on its one thread. */
export class InProcessRunner implements Runner {
  readonly name = "in-process";
  readonly #concurrency: number;
  readonly #journal: ScoreJournal | undefined;

  constructor({ concurrency = 16, journal }: InProcessOptions = {}) {
    this.#concurrency = concurrencyOf(concurrency);
    this.#journal = journal;
  }

  async *run(
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    options: RunOptions,
  ): AsyncGenerator<ScoredCase, void, undefined> {
    const progress = new ProgressCount(options);
    const scored = concurrently(
      pairsOf(samples, evaluators),
      this.#concurrency,
      ([sample, evaluator], signal) => this.#score(sample, evaluator, signal),
      options.signal,
    );
    for await (const row of scored) {
      progress.count(row);
      yield row;
    }
    await this.#journal?.flush();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #score(sample: Sample, evaluator: Evaluator, signal: AbortSignal): Promise<ScoredCase> {
    const journal = this.#journal;
    if (journal === undefined) return scorePair(sample, evaluator, signal);
    const key = journal.keyOf(sample, evaluator);
    const known = await journal.read(key);
    if (known !== undefined) return { caseId: sample.case.id, evaluator: evaluator.name, score: known };
    const row = await scorePair(sample, evaluator, signal);
    await journal.append(key, row);
    return row;
  }
}

/** @throws OctavoError `invalid_option` unless it is a whole number from 1 to 4096 */
export function concurrencyOf(concurrency: number): number {
  if (Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= 4096) return concurrency;
  throw new OctavoError(
    "invalid_option",
    `concurrency: expected a whole number from 1 to 4096, got ${concurrency}`,
    { param: "concurrency" },
  );
}
