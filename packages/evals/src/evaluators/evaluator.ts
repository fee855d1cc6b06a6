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
  | "baseline"
  /** How the answer was served: times, token counts, finish reason. */
  | "serving";

/** `pass_fail` scores are 0 or 1, `score`s are from 0 to 1, a `choice` has a label and the score its label stands for. */
export type OutputKind = "pass_fail" | "score" | "choice";

/** Scores one answer. */
export interface Evaluator {
  /** Unique within a run: scores, summaries and journals are keyed by it. */
  readonly name: string;
  /** From which the table makes it again on another thread or machine; undefined where only this process has it. */
  readonly spec?: EvaluatorSpec;
  /** What else decides its scores, such as the judge's name and the rubric's version: part of the key they are kept under. */
  readonly fingerprint?: string;
  readonly description: string;
  readonly inputs: readonly EvaluatorInput[];
  readonly output: OutputKind;
  readonly needsJudge: boolean;
  /** Name of the model that judges, where one does. */
  readonly judge?: string;
  /** Does not reject but for an aborted `signal`: what goes wrong is a score of its own. */
  evaluate(sample: Sample, options: EvaluateOptions): Score | Promise<Score>;
}

/** An evaluator as configuration files and job queues write it. */
export interface EvaluatorSpec {
  /** Name of the row in the table. */
  readonly name: string;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Another name for the evaluator that it makes, where one row is used twice in a run. */
  readonly as?: string;
  /** Turns the verdict around: the value becomes one minus itself. */
  readonly not?: boolean;
  /** From which value on it passes; the row's own where absent. */
  readonly threshold?: number;
  /** Only cases that have one of these tags are scored; the others are skipped. */
  readonly tags?: readonly string[];
}

/** What an evaluator is given beside the sample. */
export interface EvaluateOptions {
  readonly signal: AbortSignal;
}

/** What an evaluator says of one answer: 0 to 1, or why it says nothing. */
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
