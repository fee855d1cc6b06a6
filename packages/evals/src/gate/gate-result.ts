import type { Verdict } from "../checks/check.js";

/** The five things that eval.yaml sets expectations for. */
export const healthDimensions = ["latency", "throughput", "error_rate", "cost", "quality"] as const;
/** A side of quality that a gate sums up by itself. */
export type HealthDimension = (typeof healthDimensions)[number];

/** How a run ended; each has an exit code of its own (`exit-codes.ts`). */
export type GateOutcome =
  | "pass"
  | "fail"
  | "inconclusive"
  | "judge_broken"
  | "target_unreachable"
  | "data"
  | "config"
  | "timeout"
  /** None of the changed files is one that this gate watches. */
  | "skipped";

/** Whether a release passes, and by which evidence. */
export interface GateResult {
  readonly name: string;
  readonly outcome: GateOutcome;
  readonly exitCode: number;
  /** One sentence with what decided. */
  readonly summary: string;
  readonly items: readonly GateItem[];
}

/** The result of one assertion or one check. */
export interface GateItem {
  readonly dimension: HealthDimension | "check";
  /** As it was written, such as `pass_rate(json_schema) >= 0.97`, or the name of a check. */
  readonly expectation: string;
  /** `warn`: shown, and does not decide. */
  readonly onFail: "error" | "warn";
  readonly verdict: Verdict;
  readonly estimate: number | undefined;
  readonly interval: readonly [number, number] | undefined;
  readonly bound: number | undefined;
  readonly unit: "share" | "ratio" | "ms" | "tokens_per_second" | "usd" | "score" | "tokens";
  readonly numObservations: number;
  /** The test or interval that was used. */
  readonly method: string;
  readonly summary: string;
}
