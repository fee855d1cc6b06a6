import { measured, skipped, verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry, type Measured } from "../registry.js";
import { schemaCheck } from "../json/schema-validator.js";
import type { CallCheck } from "./check-call.js";
import { type CallsCheck, checkCalls } from "./check-calls.js";
import { readCall, sameFunction } from "./made-call.js";

/** Errors that a score lists. */
const maxErrors = 20;

/** A row that scores how the calls of an answer compare with those that are expected. */
function callEvaluator(
  name: string,
  description: string,
  output: "pass_fail" | "score",
  valueOf: (check: CallsCheck) => number | undefined,
): EvaluatorEntry {
  return defineEvaluator({
    name,
    description,
    inputs: ["toolCalls", "expectedToolCalls"],
    output,
    passThreshold: 1,
    score({ case: { expected, tools }, answer }) {
      const wanted = expected.toolCalls ?? [];
      const check = checkCalls(wanted, answer.toolCalls, tools, expected.isOrderFree ?? true);
      const value = valueOf(check);
      return value === undefined ? skipped("no call is expected") : measured(value, explained(check));
    },
  });
}

function explained({ errors, numExpected, numMade }: CallsCheck): Omit<Measured, "status" | "value"> {
  const [first] = errors;
  const details = { errors: errors.slice(0, maxErrors), numErrors: errors.length, numExpected, numMade };
  if (first === undefined) return { details };
  const where = [first.function, first.parameter].filter((part) => part !== undefined).join(".");
  return { details, reason: `${first.code} at ${where}: ${first.message}` };
}

/** Mean over the expected calls; one that was not made has zero, as has one of another function. */
function meanOf(part: "presence" | "types" | "values") {
  return ({ calls }: CallsCheck): number | undefined => {
    if (calls.length === 0) return undefined;
    return calls.reduce((sum, check) => sum + (check?.[part] ?? 0), 0) / calls.length;
  };
}

/** Share of all calls, expected or made, that are pairs of which this holds. */
function shareWhere(holds: (check: CallCheck) => boolean) {
  return ({ calls, numExpected, numMade }: CallsCheck): number => {
    const all = Math.max(numExpected, numMade);
    return all === 0 ? 1 : calls.filter((check) => check !== undefined && holds(check)).length / all;
  };
}

const isRight = (check: CallCheck): boolean => check.errors.length === 0;
const isExact = (check: CallCheck): boolean => check.isExact;

export const functionCallingEvaluators: readonly EvaluatorEntry[] = [
  callEvaluator(
    "evaluate_function_calling",
    "Every expected call was made, and no other: function, required parameters, types and accepted values by BFCL's rules.",
    "pass_fail",
    (check) => (check.errors.length === 0 ? 1 : 0),
  ),
  callEvaluator(
    "function_name_match",
    "Share of the calls that are of the expected functions.",
    "score",
    shareWhere((check) => check.hasName),
  ),
  callEvaluator(
    "parameter_presence",
    "Share of the parameters that are given and known, of those that are given or have to be.",
    "score",
    meanOf("presence"),
  ),
  callEvaluator(
    "parameter_types",
    "Share of the given parameters that have the described type.",
    "score",
    meanOf("types"),
  ),
  callEvaluator(
    "parameter_values",
    "Share of the parameters that have an accepted value, of those that are given or have to be.",
    "score",
    meanOf("values"),
  ),
  callEvaluator(
    "function_call_accuracy",
    "Share of the calls, expected or made, that are right.",
    "score",
    shareWhere(isRight),
  ),
  callEvaluator(
    "function_call_exact_match",
    "Every expected call was made, and no other, with values equal in every character.",
    "pass_fail",
    (check) => (shareWhere(isExact)(check) === 1 ? 1 : 0),
  ),
  defineEvaluator({
    name: "valid_tool_calls",
    description:
      "Every call is of a tool that was offered, with arguments that its schema allows; no gold is needed.",
    inputs: ["tools", "toolCalls"],
    score({ case: { tools }, answer }) {
      if (answer.toolCalls.length === 0) return skipped("the answer has no tool calls");
      for (const call of answer.toolCalls) {
        const made = readCall(call);
        const tool = tools.find((candidate) => sameFunction(candidate.function.name, made.name));
        if (tool === undefined) return verdict(false, `there is no tool ${made.name.slice(0, 80)}`);
        if (made.arguments === undefined) return verdict(false, `${made.name}: ${made.problem}`);
        const problem = schemaCheck(tool.function.parameters ?? {})(made.arguments);
        if (problem !== undefined) return verdict(false, `${made.name}: ${problem}`);
      }
      return verdict(true);
    },
  }),
];
