import type { Answer } from "../answers/answer.js";
import type { Score } from "../evaluators/evaluator.js";

/** One case with what every target answered and how each answer scored: what journals keep, gates measure and reports list. */
export interface CaseRow {
  readonly caseId: string;
  readonly dataset: string;
  /** Cases of one block were asked at one time; targets take turns by blocks. */
  readonly block: number;
  readonly cluster: string | undefined;
  readonly tenant: string | undefined;
  readonly tags: readonly string[];
  /** The last message of the user. */
  readonly input: string;
  readonly expected: string | undefined;
  /** By the target's name. */
  readonly answers: Readonly<Record<string, ScoredAnswer>>;
}

/** An answer with its scores. */
export interface ScoredAnswer {
  readonly answer: Answer;
  /** By the evaluator's name. Of an answer that never came only those of evaluators that leave the case out. */
  readonly scores: Readonly<Record<string, Score>>;
}
