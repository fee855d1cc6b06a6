import type { AnsweredToolCall } from "../../answers/answer.js";
import type { ExpectedToolCall, ToolDefinition } from "../../cases/eval-case.js";
import { bestAlignment, bestAssignment } from "./assignment.js";
import { type CallCheck, type CallError, checkCall } from "./check-call.js";
import { readCall } from "./made-call.js";

/** More calls than this are not looked at: the count is wrong anyway. */
const maxCalls = 128;

export interface CallsCheck {
  readonly numExpected: number;
  readonly numMade: number;
  /** The call made for each expected call, in order; undefined if there was none. */
  readonly calls: readonly (CallCheck | undefined)[];
  readonly errors: readonly CallError[];
}

/**
 * Pairs the calls that were made with those that are expected, in any order or in order, so that as many as can be are
 * right, and of pairings with as many the one in which most of the arguments are.
 */
export function checkCalls(
  expected: readonly ExpectedToolCall[],
  answered: readonly AnsweredToolCall[],
  tools: readonly ToolDefinition[],
  isOrderFree: boolean,
): CallsCheck {
  const made = answered.slice(0, maxCalls).map(readCall);
  const wanted = expected.slice(0, maxCalls);
  const checks = wanted.map((call) => made.map((own) => checkCall(call, own, tools)));
  const weights = checks.map((row) => row.map(weightOf));
  const columns = isOrderFree ? bestAssignment(weights) : bestAlignment(weights);
  const calls = expected.map((_, row) => {
    const column = columns[row];
    return column === undefined ? undefined : checks[row]?.[column];
  });
  const errors = calls.flatMap((check, index) => check?.errors ?? [missingCall(expected[index]!.name)]);
  if (expected.length !== answered.length) {
    const message = `expected ${expected.length} calls, got ${answered.length}`;
    errors.unshift({ code: "wrong_count", function: expected[0]?.name ?? answered[0]?.name ?? "", message });
  }
  return { numExpected: expected.length, numMade: answered.length, calls, errors };
}

function missingCall(name: string): CallError {
  return { code: "missing_call", function: name, message: "no call was made for it, or not in its place" };
}

/** A right call outweighs any number of calls that are nearly right. */
function weightOf(check: CallCheck): number {
  if (!check.hasName) return 0;
  if (check.errors.length === 0) return check.isExact ? 1001 : 1000;
  return 1 + check.presence + check.types + check.values;
}
