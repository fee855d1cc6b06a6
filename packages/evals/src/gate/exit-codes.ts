import type { ErrorCode } from "@octavo/protocol";
import type { CheckResult } from "../checks/check.js";
import type { GateOutcome } from "./gate-result.js";

/** Exit codes of `octavo eval`, for scripts and pipelines; defined only here. */
export const exitCodes = {
  pass: 0,
  skipped: 0,
  /** A defect of Octavo, or of the machine. */
  unexpected: 1,
  fail: 2,
  inconclusive: 3,
  config: 4,
  data: 5,
  target_unreachable: 6,
  timeout: 7,
  judge_broken: 8,
  /** As shells report a command that SIGINT ended; the journal keeps the finished part. */
  interrupted: 130,
} as const satisfies Record<GateOutcome | "unexpected" | "interrupted", number>;

const outcomeOfError: Readonly<Partial<Record<ErrorCode, keyof typeof exitCodes>>> = {
  invalid_option: "config",
  invalid_request: "config",
  dataset_invalid: "data",
  target_unreachable: "target_unreachable",
  deadline_exceeded: "timeout",
  judge_failed: "judge_broken",
  request_cancelled: "interrupted",
};

/** Exit code of checks alone: a proven failure stands, and a broken judge takes precedence over inconclusive. */
export function exitCodeOfChecks(
  checks: readonly Pick<CheckResult, "verdict" | "brokenEvaluators">[],
): number {
  if (checks.some(({ verdict }) => verdict === "fail")) return exitCodes.fail;
  if (checks.some(({ brokenEvaluators = [] }) => brokenEvaluators.length > 0)) return exitCodes.judge_broken;
  const isWhole = checks.length > 0 && checks.every(({ verdict }) => verdict === "pass");
  return isWhole ? exitCodes.pass : exitCodes.inconclusive;
}

/** Exit code of a run that could not be finished. */
export function exitCodeOfError(code: ErrorCode): number {
  return exitCodes[outcomeOfError[code] ?? "unexpected"];
}

/** What a run that ended with this error is in a report; undefined where no gate has a say. */
export function outcomeOf(code: ErrorCode): GateOutcome | undefined {
  const outcome = outcomeOfError[code];
  return outcome === "interrupted" || outcome === "unexpected" ? undefined : outcome;
}
