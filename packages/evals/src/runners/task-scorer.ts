import { OctavoError } from "@octavo/protocol";
import type { Evaluator, EvaluatorSpec, Score } from "../evaluators/evaluator.js";
import type { EvaluatorServices, EvaluatorTable } from "../evaluators/registry.js";
import type { Runner } from "./runner.js";
import { parseScoringTask } from "./scoring-task.js";

/** A run's tasks have few specs; configurations that change all the time are not kept for ever. */
const maxKept = 1000;

export interface TaskScorerOptions {
  readonly table: EvaluatorTable;
  readonly services?: EvaluatorServices;
  /** What does the scoring. */
  readonly runner: Runner;
}

/** Scores tasks on the worker's side: makes evaluators from their specs, and gives pairs to a runner here. */
export class TaskScorer {
  readonly #options: TaskScorerOptions;
  readonly #made = new Map<string, Evaluator>();

  constructor(options: TaskScorerOptions) {
    this.#options = options;
  }

  /**
   * @param data a `ScoringTask` as JSON gave it
   * @throws OctavoError for what is no task, an evaluator that is not known here or is another here than where the run is
   */
  async score(data: unknown, signal: AbortSignal): Promise<Score> {
    const { sample, spec, fingerprint } = parseScoringTask(data);
    const evaluator = this.#evaluatorOf(spec);
    if ((evaluator.fingerprint ?? null) !== fingerprint) {
      throw new OctavoError(
        "runner_unavailable",
        `this worker's ${evaluator.name} is another than the run's (${evaluator.fingerprint ?? "none"}, not ${fingerprint ?? "none"}): give runner and workers the same judge`,
      );
    }
    const { runner } = this.#options;
    for await (const { score } of runner.run([sample], [evaluator], { signal })) return score;
    throw new OctavoError("internal_error", `the runner ${runner.name} gave no score`);
  }

  #evaluatorOf(spec: EvaluatorSpec): Evaluator {
    const key = JSON.stringify(spec);
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const { table, services = {} } = this.#options;
    const [made] = table.create([spec], services);
    if (made === undefined) throw new OctavoError("internal_error", "a spec made no evaluator");
    if (this.#made.size >= maxKept) this.#made.clear();
    this.#made.set(key, made);
    return made;
  }
}
