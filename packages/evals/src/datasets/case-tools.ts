import { isRecord } from "@octavo/protocol";
import type { ExpectedToolCall, JsonSchema, ToolDefinition } from "../cases/eval-case.js";
import { calledFunction } from "./case-messages.js";
import { invalidRecord, type Place, quoted } from "./place.js";

/** Tools as OpenAI writes them (`{type: "function", function: {...}}`) or bare (`{name, description, parameters}`). */
export function parseTools(value: unknown, field: string, place: Place): ToolDefinition[] {
  if (!Array.isArray(value)) {
    throw invalidRecord(place, field, `must be a list of tools, but is ${quoted(value)}`);
  }
  return value.map((tool: unknown, index): ToolDefinition => {
    const at = `${field}[${index}]`;
    if (!isRecord(tool)) throw invalidRecord(place, at, `must be a tool, but is ${quoted(tool)}`);
    const given = isRecord(tool["function"]) ? tool["function"] : tool;
    const { name, description, parameters, strict } = given;
    if (typeof name !== "string" || name === "") {
      throw invalidRecord(place, `${at}.name`, `must be the name of a function, but is ${quoted(name)}`);
    }
    if (parameters !== undefined && parameters !== null && !isRecord(parameters)) {
      throw invalidRecord(place, `${at}.parameters`, `must be a JSON schema, but is ${quoted(parameters)}`);
    }
    return {
      type: "function",
      function: {
        name,
        ...(typeof description === "string" && { description }),
        ...(isRecord(parameters) && { parameters }),
        ...(typeof strict === "boolean" && { strict }),
      },
    };
  });
}

/** Calls with exact arguments (an object, or the text of one): each argument accepts one value. */
export function parseExactCalls(value: unknown, field: string, place: Place): ExpectedToolCall[] {
  return callList(value, field, place).map((call: unknown, index) => {
    const at = `${field}[${index}]`;
    const { name, argumentsGiven } = calledFunction(call, at, place);
    const given = parseArguments(argumentsGiven, `${at}.arguments`, place);
    return {
      name,
      arguments: Object.fromEntries(Object.entries(given).map(([key, accepted]) => [key, [accepted]])),
    };
  });
}

/** Calls with lists of accepted values, as `EvalCase` holds them. */
export function parseAcceptedCalls(value: unknown, field: string, place: Place): ExpectedToolCall[] {
  return callList(value, field, place).map((call: unknown, index) => {
    const at = `${field}[${index}]`;
    const { name, argumentsGiven } = calledFunction(call, at, place);
    return { name, arguments: acceptedValues(argumentsGiven ?? {}, `${at}.arguments`, place) };
  });
}

/** Checks that each argument has the list of values that are accepted for it. */
export function acceptedValues(
  value: unknown,
  field: string,
  place: Place,
): Readonly<Record<string, readonly unknown[]>> {
  if (!isRecord(value)) {
    throw invalidRecord(
      place,
      field,
      `must be an object of lists of accepted values, but is ${quoted(value)}`,
    );
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, accepted]) => {
      if (Array.isArray(accepted)) return [name, accepted];
      throw invalidRecord(
        place,
        `${field}.${name}`,
        `must be the list of accepted values, but is ${quoted(accepted)}`,
      );
    }),
  );
}

function callList(value: unknown, field: string, place: Place): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalidRecord(place, field, `must be a list of calls, but is ${quoted(value)}`);
}

function parseArguments(given: unknown, field: string, place: Place): JsonSchema {
  let value = given ?? {};
  if (typeof value === "string") {
    try {
      value = JSON.parse(value === "" ? "{}" : value);
    } catch (error) {
      throw invalidRecord(place, field, "is text that is not JSON", error);
    }
  }
  if (isRecord(value)) return value;
  throw invalidRecord(place, field, `must be an object, but is ${quoted(value)}`);
}
