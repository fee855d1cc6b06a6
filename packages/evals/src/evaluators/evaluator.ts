import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";

/** An answer to be scored; `baseline` is another's answer to the same case, for evaluators that compare. */
export interface Sample {
  readonly case: EvalCase;
  readonly answer: Answer;
  readonly baseline?: Answer;
}

/** What of a sample an evaluator reads. A sample that lacks one of them is skipped. */
export type EvaluatorInput =
  | "input"
  | "output"
  | "context"
  | "expectedOutput"
  | "schema"
  | "tools"
  | "toolCalls"
  | "expectedToolCalls"
  | "conversation"
  | "baseline";

/** `pass_fail` scores are 0 or 1, `score`s are from 0 to 1, a `choice` has a label and the score its label stands for. */
export type OutputKind = "pass_fail" | "score" | "choice";

/** Scores one answer. */
export interface Evaluator {
  readonly name: string;
  readonly description: string;
  readonly inputs: readonly EvaluatorInput[];
  readonly output: OutputKind;
  readonly needsJudge: boolean;
  /** Does not reject but for an aborted `signal`: what goes wrong is a score of its own. */
  evaluate(sample: Sample, options: EvaluateOptions): Score | Promise<Score>;
}

export interface EvaluateOptions {
  readonly signal: AbortSignal;
}

export type Score =
  | {
      readonly status: "scored";
      /** 0 to 1, more is better. */
      readonly value: number;
      readonly passed: boolean;
      readonly label?: string;
      readonly reason?: string;
      /** What the score was made of, such as error codes of a tool call. */
      readonly details?: Readonly<Record<string, unknown>>;
    }
  /** The sample lacks what the evaluator reads. */
  | { readonly status: "skipped"; readonly reason: string }
  /** The evaluator could not tell, as when its judge is down: no score, never a bad one. */
  | { readonly status: "failed"; readonly code: string; readonly reason: string };
