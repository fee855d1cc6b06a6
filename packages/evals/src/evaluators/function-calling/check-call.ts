import { isRecord } from "@octavo/protocol";
import type { ExpectedToolCall, JsonSchema, ToolDefinition } from "../../cases/eval-case.js";
import { isAccepted, isExactly, isOptional } from "./accepted-values.js";
import { describes, typeProblem } from "./argument-types.js";
import { type MadeCall, sameFunction } from "./made-call.js";
import { readSource, sourceSchema } from "./source-values.js";

type CallErrorCode =
  | "wrong_count"
  | "missing_call"
  | "wrong_function"
  | "invalid_arguments"
  | "missing_required"
  | "missing_optional"
  | "unexpected_parameter"
  | "type_error_simple"
  | "type_error_nested"
  | "value_error_string"
  | "value_error_array"
  | "value_error_object"
  | "value_error_other";

export interface CallError {
  readonly code: CallErrorCode;
  readonly function: string;
  readonly parameter?: string;
  readonly message: string;
}

/** How one made call compares with an expected one. Shares are from 0 to 1. */
export interface CallCheck {
  readonly hasName: boolean;
  /** Share of the given or required parameters that are given and known. */
  readonly presence: number;
  /** Share of the given and known parameters that have the right type. */
  readonly types: number;
  /** Share of the known parameters, given or required, whose value is accepted. */
  readonly values: number;
  readonly errors: readonly CallError[];
  /** Right without any standardising of strings. */
  readonly isExact: boolean;
}

/**
 * Checks a call by the abstract-syntax-tree rules of the Berkeley Function-Calling Leaderboard (Patil et al., 2025): the right
 * function, what is required is there, nothing that is unknown, right types, accepted values.
 */
export function checkCall(
  expected: ExpectedToolCall,
  made: MadeCall,
  tools: readonly ToolDefinition[],
): CallCheck {
  const nothing = { presence: 0, types: 0, values: 0, isExact: false };
  const error = (code: CallErrorCode, message: string, parameter?: string): CallError => ({
    code,
    function: expected.name,
    ...(parameter === undefined ? {} : { parameter }),
    message,
  });
  if (!sameFunction(made.name, expected.name)) {
    const message = `expected ${expected.name}, got ${made.name.slice(0, 80)}`;
    return { ...nothing, hasName: false, errors: [error("wrong_function", message)] };
  }
  if (made.arguments === undefined) {
    const message = `the arguments are not a JSON object: ${made.problem}`;
    return { ...nothing, hasName: true, errors: [error("invalid_arguments", message)] };
  }

  const given = made.arguments;
  const { properties, required } = describedBy(tools, expected.name);
  const errors: CallError[] = [];
  const known = Object.keys(given).filter((name) => Object.hasOwn(expected.arguments, name));
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(expected.arguments, name)) {
      errors.push(error("unexpected_parameter", "the call should not have it", name.slice(0, 80)));
    }
  }
  const missing = new Set<string>();
  for (const name of required) {
    if (Object.hasOwn(given, name)) continue;
    missing.add(name);
    errors.push(error("missing_required", "the function requires it", name));
  }
  for (const [name, accepted] of Object.entries(expected.arguments)) {
    if (Object.hasOwn(given, name) || missing.has(name) || isOptional(accepted)) continue;
    missing.add(name);
    errors.push(error("missing_optional", "this call needs it", name));
  }

  let numTyped = 0;
  let numAccepted = 0;
  let isExact = true;
  for (const name of known) {
    const accepted = expected.arguments[name]!;
    const source = expected.sources?.[name];
    const written = given[name];
    const isSource = source !== undefined && typeof written === "string";
    const value = isSource ? readSource(written, source) : written;
    const schema = source === undefined ? properties[name] : isSource ? sourceSchema(source) : textSchema;
    const isVariable = !describes(schema, accepted);
    const isRight =
      (source === undefined || isSource) &&
      (isVariable
        ? accepted.includes(value) || isAccepted(value, accepted.filter(isNoText))
        : isAccepted(value, accepted));
    // an accepted value is right whatever type is described, as where a variable stands for a list of numbers
    const problem = isRight
      ? undefined
      : typeProblem(value, schema, isSource || source === undefined ? accepted : []);
    if (problem === undefined) numTyped++;
    else
      errors.push(error(problem.isNested ? "type_error_nested" : "type_error_simple", problem.message, name));
    if (isRight) numAccepted++;
    else if (problem === undefined)
      errors.push(error(valueErrorOf(value), describeValues(value, accepted), name));
    isExact &&= isExactly(value, accepted);
  }
  return {
    hasName: true,
    presence: share(known.length, Object.keys(given).length + missing.size),
    types: share(numTyped, known.length),
    values: share(numAccepted, known.length + missing.size),
    errors,
    isExact: isExact && errors.length === 0 && made.name === expected.name,
  };
}

const textSchema: JsonSchema = { type: "string" };
const isNoText = (accepted: unknown): boolean => typeof accepted !== "string";

function share(part: number, whole: number): number {
  return whole === 0 ? 1 : part / whole;
}

function describedBy(
  tools: readonly ToolDefinition[],
  name: string,
): { readonly properties: Readonly<Record<string, JsonSchema>>; readonly required: readonly string[] } {
  const parameters = tools.find((tool) => sameFunction(tool.function.name, name))?.function.parameters;
  const properties = parameters?.["properties"];
  const required = parameters?.["required"];
  return {
    properties: isRecord(properties)
      ? Object.fromEntries(
          Object.entries(properties).filter((entry) => isRecord(entry[1])) as [string, JsonSchema][],
        )
      : {},
    required: Array.isArray(required) ? required.filter((item) => typeof item === "string") : [],
  };
}

function valueErrorOf(value: unknown): CallErrorCode {
  if (typeof value === "string") return "value_error_string";
  if (Array.isArray(value)) return "value_error_array";
  return isRecord(value) ? "value_error_object" : "value_error_other";
}

function describeValues(value: unknown, accepted: readonly unknown[]): string {
  const text = (item: unknown): string => (JSON.stringify(item) ?? "undefined").slice(0, 80);
  return `${text(value)} is none of ${accepted.slice(0, 5).map(text).join(", ")}`;
}
