import { OctavoError } from "@octavo/protocol";
import type { Dataset } from "../datasets/dataset.js";
import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import { concurrently } from "../runners/concurrently.js";
import { concurrencyOf, LocalRunner } from "../runners/local-runner.js";
import type { Runner, RunnerProgress } from "../runners/runner.js";
import type { Target } from "../targets/target.js";
import type { EvaluationSummary } from "./summary.js";
import { Tally } from "./tally.js";

/** What is scored: samples that are there, or what a target answers to a dataset's cases. */
export type EvaluationSource =
  | { readonly samples: AsyncIterable<Sample> | Iterable<Sample> }
  | {
      readonly dataset: Dataset;
      readonly target: Target;
      /** Answers each case too, for evaluators that compare. */
      readonly baseline?: Target;
    };

/** What is evaluated, by what and where. */
export type EvaluationOptions = EvaluationSource & {
  /** At least one, of different names. */
  readonly evaluators: readonly Evaluator[];
  /** Where they run; stays the caller's to close. Default: this process. */
  readonly runner?: Runner;
  /** Cases that the target is asked at a time, and pairs that are scored at a time by the default runner. Default 8. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: RunnerProgress) => void;
  /** An evaluator of whose scores a larger share failed is broken, and the evaluation with it. Default 0.05. */
  readonly maxFailureRate?: number;
  /** Confidence level of the intervals. Default 0.95. */
  readonly confidence?: number;
  /** Seed of the resampling. Default 1. */
  readonly seed?: number;
};

/** The score that one evaluator gave one sample. */
export interface EvaluatedRow {
  readonly sample: Sample;
  readonly evaluator: string;
  readonly score: Score;
}

/**
 * Scores answers with evaluators: rows stream as they are made, and the summary follows from all of them. Nothing is kept
 * of a row that was read, so a million cases take no more memory than a thousand.
 *
 * @example
 * const evaluation = evaluate({ dataset, target, evaluators: evaluatorTable.create(["is_json", "exact_match"]) });
 * for await (const row of evaluation) show(row);
 * const { evaluators } = await evaluation.summary();
 *
 * @throws OctavoError `invalid_option` for options that make no sense, before anything is asked
 */
export function evaluate(options: EvaluationOptions): Evaluation {
  return new Evaluation(options);
}

/** Rows that are read once, and their summary. Iterating rejects with what the dataset, the runner or the signal reject with. */
export class Evaluation implements AsyncIterable<EvaluatedRow> {
  readonly #options: EvaluationOptions;
  readonly #tally: Tally;
  readonly #concurrency: number;
  #hasStarted = false;
  #isComplete = false;

  constructor(options: EvaluationOptions) {
    const { evaluators, concurrency = 8, maxFailureRate = 0.05, confidence = 0.95, seed = 1 } = options;
    requireNames(evaluators);
    requireShare("maxFailureRate", maxFailureRate);
    requireShare("confidence", confidence);
    this.#options = options;
    this.#concurrency = concurrencyOf(concurrency);
    this.#tally = new Tally(evaluators, { confidence, maxFailureRate, seed });
  }

  /** @throws OctavoError `invalid_option` the second time: the rows were not kept */
  [Symbol.asyncIterator](): AsyncGenerator<EvaluatedRow, void, undefined> {
    if (this.#hasStarted) {
      throw new OctavoError("invalid_option", "the rows of an evaluation can be read once: evaluate again");
    }
    this.#hasStarted = true;
    return this.#rows();
  }

  /** Reads the rows that nobody has asked for; of rows that somebody is reading, the summary so far. */
  async summary(): Promise<EvaluationSummary> {
    if (!this.#hasStarted) for await (const row of this) void row;
    return this.#tally.summary(this.#isComplete);
  }

  async *#rows(): AsyncGenerator<EvaluatedRow, void, undefined> {
    const { evaluators, onProgress } = this.#options;
    const signal = this.#options.signal ?? new AbortController().signal;
    const runner = this.#options.runner ?? new LocalRunner({ concurrency: this.#concurrency });
    const total = totalOf(this.#options);
    const waiting = new Map<string, Waiting>();
    const scored = runner.run(this.#watched(waiting, signal), evaluators, {
      signal,
      onProgress: (progress) => onProgress?.({ ...progress, total: progress.total ?? total }),
    });
    for await (const { caseId, evaluator, score } of scored) {
      const own = waiting.get(caseId);
      if (own === undefined || !own.evaluators.delete(evaluator)) {
        const pair = `${evaluator} of case ${caseId.slice(0, 80)}`;
        throw new OctavoError("internal_error", `the runner ${runner.name} scored ${pair} once too often`);
      }
      if (own.evaluators.size === 0) waiting.delete(caseId);
      this.#tally.addScore(own.sample.case, evaluator, score);
      yield { sample: own.sample, evaluator, score };
    }
    this.#isComplete = true;
  }

  /** The samples, each remembered until it has all its scores. */
  async *#watched(
    waiting: Map<string, Waiting>,
    signal: AbortSignal,
  ): AsyncGenerator<Sample, void, undefined> {
    for await (const sample of samplesOf(this.#options, this.#concurrency, signal)) {
      const { id } = sample.case;
      if (waiting.has(id)) {
        throw new OctavoError(
          "dataset_invalid",
          `two cases have the id ${JSON.stringify(id.slice(0, 80))}: ids pair scores with cases and must differ`,
        );
      }
      waiting.set(id, { sample, evaluators: new Set(this.#options.evaluators.map(({ name }) => name)) });
      this.#tally.addAnswer(sample.answer);
      yield sample;
    }
  }
}

interface Waiting {
  readonly sample: Sample;
  /** Whose score is still to come. */
  readonly evaluators: Set<string>;
}

function samplesOf(
  source: EvaluationSource,
  concurrency: number,
  outer: AbortSignal,
): AsyncIterable<Sample> | Iterable<Sample> {
  if ("samples" in source) return source.samples;
  const { dataset, target, baseline } = source;
  return concurrently(
    dataset.cases(),
    concurrency,
    async (evalCase, signal): Promise<Sample> => {
      const [answer, other] = await Promise.all([
        target.answer(evalCase, { signal }),
        baseline?.answer(evalCase, { signal }),
      ]);
      return { case: evalCase, answer, ...(other === undefined ? {} : { baseline: other }) };
    },
    outer,
  );
}

function totalOf(options: EvaluationOptions): number | undefined {
  if ("dataset" in options) {
    return options.dataset.size === undefined ? undefined : options.dataset.size * options.evaluators.length;
  }
  return Array.isArray(options.samples) ? options.samples.length * options.evaluators.length : undefined;
}

function requireNames(evaluators: readonly Evaluator[]): void {
  if (evaluators.length === 0) {
    throw new OctavoError("invalid_option", "evaluators: expected at least one", { param: "evaluators" });
  }
  const names = evaluators.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) {
    throw new OctavoError("invalid_option", `evaluators: two are called ${twice}: name one with \`as\``, {
      param: "evaluators",
    });
  }
}

function requireShare(param: string, value: number): void {
  if (value > 0 && value < 1) return;
  if (param === "maxFailureRate" && (value === 0 || value === 1)) return;
  throw new OctavoError("invalid_option", `${param}: expected a share from 0 to 1, got ${value}`, { param });
}
