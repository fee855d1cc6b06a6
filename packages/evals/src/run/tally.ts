import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { Evaluator, Score } from "../evaluators/evaluator.js";
import { selfJudgingWarning } from "../judges/self-judging.js";
import { ClusterSlots } from "./cluster-slots.js";
import { Counts } from "./counts.js";
import { SliceSums, type SliceSettings } from "./slice-sums.js";
import type { EvaluationSummary, EvaluatorStatus, EvaluatorResult, SliceSummary } from "./summary.js";

/** Tags that are summarised; a tag per case would be no slice. */
const maxTags = 256;

interface TallySettings {
  readonly confidence: number;
  readonly maxFailureRate: number;
  readonly seed: number;
}

/** The sums of an evaluation, in memory that does not grow with the number of cases. */
export class Tally {
  readonly #settings: TallySettings;
  readonly #evaluators: ReadonlyMap<string, EvaluatorTally>;
  readonly #slots = new ClusterSlots();
  readonly #tags = new Set<string>();
  readonly #answerFailures = new Counts();
  readonly #models = new Counts();
  #numCases = 0;
  #hasMoreTags = false;

  constructor(evaluators: readonly Evaluator[], settings: TallySettings) {
    this.#settings = settings;
    this.#evaluators = new Map(
      evaluators.map((evaluator) => [evaluator.name, new EvaluatorTally(evaluator)]),
    );
  }

  addAnswer(answer: Answer): void {
    this.#numCases++;
    if (answer.failure !== undefined) this.#answerFailures.add(answer.failure.code);
    if (answer.model !== undefined) this.#models.add(answer.model);
  }

  addScore(evalCase: EvalCase, evaluator: string, score: Score): void {
    const slot = this.#slots.slotOf(evalCase);
    this.#evaluators.get(evaluator)?.add(slot, this.#knownTags(evalCase.tags), score);
  }

  summary(isComplete: boolean): EvaluationSummary {
    const { confidence, maxFailureRate, seed } = this.#settings;
    const hasClusters = this.#slots.hasClusters;
    const evaluators = Array.from(this.#evaluators.values(), (tally) =>
      tally.summary({ hasClusters, confidence, seed }, maxFailureRate),
    );
    const statuses = evaluators.map(({ status }) => status);
    const worst = (["judge_broken", "evaluator_broken"] as const).find((status) => statuses.includes(status));
    return {
      isComplete,
      status: worst ?? "ok",
      numCases: this.#numCases,
      answerFailures: this.#answerFailures.list(),
      evaluators,
      confidence,
      maxFailureRate,
      notes: [
        ...(this.#hasMoreTags ? [`only the first ${maxTags} tags are summarised`] : []),
        ...this.#judgeWarnings(),
      ],
    };
  }

  #judgeWarnings(): readonly string[] {
    const models = this.#models.list().map(({ name }) => name);
    const judges = new Set(Array.from(this.#evaluators.values(), ({ judge }) => judge));
    return [...judges].flatMap((judge) => selfJudgingWarning(judge, models) ?? []);
  }

  #knownTags(tags: readonly string[]): readonly string[] {
    return tags.filter((tag, index) => {
      if (tags.indexOf(tag) < index) return false;
      if (this.#tags.has(tag)) return true;
      if (this.#tags.size >= maxTags) {
        this.#hasMoreTags = true;
        return false;
      }
      this.#tags.add(tag);
      return true;
    });
  }
}

class EvaluatorTally {
  readonly #evaluator: Evaluator;
  readonly #overall = new SliceSums();
  readonly #byTag = new Map<string, SliceSums>();
  readonly #failures = new Counts();

  constructor(evaluator: Evaluator) {
    this.#evaluator = evaluator;
  }

  get judge(): string | undefined {
    return this.#evaluator.judge;
  }

  add(slot: number, tags: readonly string[], score: Score): void {
    this.#overall.add(slot, score);
    if (score.status === "failed") this.#failures.add(score.code);
    for (const tag of tags) {
      const known = this.#byTag.get(tag);
      const sums = known ?? new SliceSums();
      if (known === undefined) this.#byTag.set(tag, sums);
      sums.add(slot, score);
    }
  }

  summary(settings: Omit<SliceSettings, "output">, maxFailureRate: number): EvaluatorResult {
    const { name, output, needsJudge } = this.#evaluator;
    const overall = this.#overall.summary({ ...settings, output });
    return {
      name,
      output,
      needsJudge,
      status: this.#status(overall, maxFailureRate),
      ...overall,
      failures: this.#failures.list(),
      tags: Array.from(this.#byTag, ([tag, sums]) => ({ tag, ...sums.summary({ ...settings, output }) })),
    };
  }

  #status({ numFailed, numScored }: SliceSummary, maxFailureRate: number): EvaluatorStatus {
    if (numFailed === 0 || numFailed / (numFailed + numScored) <= maxFailureRate) return "ok";
    return this.#evaluator.needsJudge ? "judge_broken" : "evaluator_broken";
  }
}
