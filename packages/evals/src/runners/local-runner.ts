import { availableParallelism } from "node:os";
import { OctavoError } from "@octavo/protocol";
import type { Evaluator, EvaluatorSpec, Sample } from "../evaluators/evaluator.js";
import { concurrently } from "./concurrently.js";
import { ProgressCount } from "./progress-count.js";
import type { RunOptions, Runner, ScoredCase } from "./runner.js";
import { batchesOf, pairsOf } from "./sample-streams.js";
import type { ScoreJournal } from "./score-journal.js";
import { scorePair } from "./score-pair.js";
import { ThreadPool } from "./worker-threads/thread-pool.js";

/** A runner in this process or in worker threads. Times in ms. */
export interface LocalOptions {
  /** That score, beside this process's own: 0 for none, `auto` for as many as the machine has cores, at most 8. Default 0. */
  readonly threads?: number | "auto";
  /** Without threads, pairs that are scored at a time; judged ones wait for their judge meanwhile. Default 16. */
  readonly concurrency?: number;
  /** Without threads: scores of earlier runs, which are not made again; this run's are added. It stays the caller's to close. */
  readonly journal?: ScoreJournal;
  /** Samples that a thread is sent at a time, for the messages' sake. Default 16. */
  readonly batchSize?: number;
  /** For one batch on a thread; what takes longer is stopped, and then tried pair by pair. Default 30 s. */
  readonly timeoutMs?: number;
  /** URLs of modules that export `evaluators`, rows of the user's own, for threads. */
  readonly modules?: readonly string[];
}

/**
 * Scores on this machine: in this process, or on threads for evaluators that compute. Evaluators that ask a judge, or that were
 * not made from a spec, run in this process either way.
 */
export class LocalRunner implements Runner {
  readonly name: string;
  readonly #concurrency: number;
  readonly #journal: ScoreJournal | undefined;
  readonly #pool: ThreadPool | undefined;
  readonly #batchSize: number;

  /** @throws OctavoError `invalid_option` */
  constructor(options: LocalOptions = {}) {
    const { concurrency = 16, journal, batchSize = 16, timeoutMs = 30_000, modules = [] } = options;
    const threads = options.threads === "auto" ? Math.min(8, availableParallelism()) : (options.threads ?? 0);
    this.#concurrency = concurrencyOf(concurrency);
    this.#batchSize = concurrencyOf(batchSize);
    if (threads !== 0) {
      if (journal !== undefined)
        throw new OctavoError("invalid_option", "journal: threads keep none: leave one of the two out", {
          param: "journal",
        });
      this.#pool = new ThreadPool({ threads: concurrencyOf(threads), timeoutMs, modules });
    }
    this.#journal = journal;
    this.name = this.#pool === undefined ? "in-process" : "worker-threads";
  }

  async *run(
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    options: RunOptions,
  ): AsyncGenerator<ScoredCase, void, undefined> {
    if (evaluators.length === 0) return;
    const progress = new ProgressCount(options);
    const scored =
      this.#pool === undefined
        ? concurrently(
            pairsOf(samples, evaluators),
            this.#concurrency,
            async ([sample, evaluator], signal) => [await this.#scoreHere(sample, evaluator, signal)],
            options.signal,
          )
        : this.#onThreads(this.#pool, samples, evaluators, options.signal);
    for await (const rows of scored)
      for (const row of rows) {
        progress.count(row);
        yield row;
      }
    await this.#journal?.flush();
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }

  #onThreads(
    pool: ThreadPool,
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    outer: AbortSignal,
  ): AsyncIterable<readonly ScoredCase[]> {
    const specs: EvaluatorSpec[] = [];
    const local: Evaluator[] = [];
    for (const evaluator of evaluators) {
      if (evaluator.spec === undefined || evaluator.needsJudge) local.push(evaluator);
      else specs.push(evaluator.spec);
    }
    return concurrently(
      batchesOf(samples, this.#batchSize),
      // each thread finds its next batch waiting
      pool.size * 2,
      async (batch, signal) => {
        const here = batch.flatMap((sample) => local.map((own) => scorePair(sample, own, signal)));
        const [there, ...rows] = await Promise.all([pool.score(batch, specs, signal), ...here]);
        return [...there, ...rows];
      },
      outer,
    );
  }

  async #scoreHere(sample: Sample, evaluator: Evaluator, signal: AbortSignal): Promise<ScoredCase> {
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
