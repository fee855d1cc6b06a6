import type { EvalCase } from "@octavo/evals";
import { mean, type Random } from "@octavo/statistics";
import {
  type Candidate,
  candidateKey,
  questionText,
  type TunedPart,
  withText,
} from "../artifact/candidate.js";
import { type Budget, BudgetEnded } from "./budget.js";
import type { CandidateResult } from "./journal-rows.js";
import type { CandidateScorer } from "./scorer.js";
import { material, type TeacherDesk } from "./teacher.js";

/** A candidate that has met every validation case. */
export interface Validated {
  readonly candidate: Candidate;
  readonly results: readonly CandidateResult[];
  readonly score: number;
  /** Its place in the order of validation; the one that stood in the files is 0. */
  readonly index: number;
  readonly origin: string;
}

export interface SearchSettings {
  readonly seed: Candidate;
  readonly parts: readonly TunedPart[];
  readonly train: readonly EvalCase[];
  readonly validation: readonly EvalCase[];
  readonly scorer: CandidateScorer;
  readonly teacher: TeacherDesk;
  readonly budget: Budget;
  readonly random: Random;
  readonly onValidated?: ((validated: Validated) => void) | undefined;
}

/** What optimisers propose to: the one loop that scores, remembers, and stops when the budget is used up. */
export class Search {
  readonly seed: Candidate;
  readonly parts: readonly TunedPart[];
  readonly train: readonly EvalCase[];
  readonly validation: readonly EvalCase[];
  readonly teacher: TeacherDesk;
  readonly random: Random;
  readonly #settings: SearchSettings;
  readonly #validated: Validated[] = [];
  readonly #known = new Map<string, Validated>();

  constructor(settings: SearchSettings) {
    this.#settings = settings;
    this.seed = settings.seed;
    this.parts = settings.parts;
    this.train = settings.train;
    this.validation = settings.validation;
    this.teacher = settings.teacher;
    this.random = settings.random;
  }

  get validated(): readonly Validated[] {
    return this.#validated;
  }

  /** The best on validation; of equals the earliest. */
  get best(): Validated | undefined {
    return this.#validated.reduce<Validated | undefined>(
      (best, one) => (best === undefined || one.score > best.score ? one : best),
      undefined,
    );
  }

  isKnown(candidate: Candidate): boolean {
    return this.#known.has(candidateKey(candidate));
  }

  /** Every candidate on every case, as one batch. */
  async score(
    candidates: readonly Candidate[],
    cases: readonly EvalCase[],
  ): Promise<readonly (readonly CandidateResult[])[]> {
    const asked = candidates.flatMap((candidate) => cases.map((evalCase) => ({ candidate, evalCase })));
    const results = await this.#settings.scorer.scoreAll(asked, this.#settings.budget);
    return candidates.map((_, index) => results.slice(index * cases.length, (index + 1) * cases.length));
  }

  /** Scores candidates on all validation cases: only those that have met them all can win. */
  async validate(candidates: readonly Candidate[], origin: string): Promise<readonly Validated[]> {
    const fresh = [...new Map(candidates.map((one) => [candidateKey(one), one]))].filter(
      ([key]) => !this.#known.has(key),
    );
    const admit = (key: string, candidate: Candidate, results: readonly CandidateResult[]): void => {
      const score = meanScore(results);
      const validated = { candidate, results, score, index: this.#validated.length, origin };
      this.#validated.push(validated);
      this.#known.set(key, validated);
      this.#settings.onValidated?.(validated);
    };
    try {
      const all = await this.score(
        fresh.map(([, candidate]) => candidate),
        this.validation,
      );
      for (const [index, [key, candidate]] of fresh.entries()) admit(key, candidate, all[index]!);
    } catch (thrown) {
      if (!(thrown instanceof BudgetEnded)) throw thrown;
      // those that were done before the budget ended count
      for (const [key, candidate] of fresh) {
        const [results] = await this.score([candidate], this.validation).catch(() => []);
        if (results === undefined) break;
        admit(key, candidate, results);
      }
      throw thrown;
    }
    return candidates.flatMap((one) => this.#known.get(candidateKey(one)) ?? []);
  }

  /** A batch of training cases, without those that stand in the examples. */
  sample(count: number, { shots }: Candidate = this.seed): readonly EvalCase[] {
    const used = new Set(shots.map(({ caseId }) => caseId));
    return this.random.shuffle(this.train.filter(({ id }) => !used.has(id))).slice(0, count);
  }

  /** The texts that a teacher wrote for a part, as candidates that are new. */
  async rewritten(
    candidate: Candidate,
    part: TunedPart,
    question: string,
    count = 1,
  ): Promise<readonly Candidate[]> {
    const texts = await this.teacher.texts(question, "text", count);
    const fresh: Candidate[] = [];
    for (const text of texts) {
      const next = withText(candidate, part.id, text);
      if (this.isKnown(next) || fresh.some((one) => candidateKey(one) === candidateKey(next)))
        this.teacher.noteRepeat();
      else {
        this.teacher.noteNew();
        fresh.push(next);
      }
    }
    return fresh;
  }
}

export function meanScore(results: readonly CandidateResult[]): number {
  return mean(results.map(({ score }) => score));
}

/** How a part is introduced to the teacher. */
export function partText({ texts }: Candidate, { id }: TunedPart): string {
  return material(partTitle(id), texts[id] ?? "");
}

function partTitle(id: string): string {
  if (id === "prompt") return "The prompt";
  const [kind, name = "", place] = id.split(":");
  if (kind === "schema") return `The description at ${name} of the answer's JSON schema`;
  return place === undefined
    ? `The description of the tool ${name}`
    : `The description at ${place} of the tool ${name}`;
}

/** Answers with what was asked, expected and said of them. */
export function traces(cases: readonly EvalCase[], results: readonly CandidateResult[]): string {
  return cases
    .map((evalCase, index) => {
      const { output, score, feedback } = results[index]!;
      const { outputs, toolCalls } = evalCase.expected;
      const expected = outputs?.[0] ?? (toolCalls === undefined ? undefined : JSON.stringify(toolCalls));
      return material(
        `Case ${index + 1}`,
        [
          `Question: ${questionText(evalCase)}`,
          `Answer: ${output}`,
          ...(expected === undefined ? [] : [`Expected: ${expected}`]),
          `Score: ${score.toFixed(2)}`,
          `Feedback: ${feedback}`,
        ].join("\n"),
      );
    })
    .join("\n\n");
}
