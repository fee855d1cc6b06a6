import { definedFields, isRecord } from "@octavo/protocol";
import type { CaseMessage } from "../cases/eval-case.js";
import { invalidRecord, type Place, quoted } from "./place.js";

const roles = ["system", "developer", "user", "assistant", "tool"] as const;
type WireToolCall = NonNullable<CaseMessage["tool_calls"]>[number];

/**
 * Chat messages as `/v1/chat/completions` takes them. Text parts are joined; arguments of calls may be objects; calls
 * without ids get `call_0`, `call_1`, ... and results without a `tool_call_id` answer the open calls in order, since many
 * data sets write neither.
 * @throws OctavoError `dataset_invalid`
 */
export function parseMessages(value: unknown, field: string, place: Place): CaseMessage[] {
  if (!Array.isArray(value)) {
    throw invalidRecord(place, field, `must be a list of messages, but is ${quoted(value)}`);
  }
  if (value.length === 0) throw invalidRecord(place, field, "is empty; a case needs a message");
  const openCalls: string[] = [];
  let numCalls = 0;
  return value.map((message: unknown, index): CaseMessage => {
    const at = `${field}[${index}]`;
    if (!isRecord(message)) throw invalidRecord(place, at, `must be a message, but is ${quoted(message)}`);
    const role = roles.find((known) => known === message["role"]);
    if (role === undefined) {
      throw invalidRecord(
        place,
        `${at}.role`,
        `must be one of ${roles.join(", ")}, but is ${quoted(message["role"])}`,
      );
    }
    const calls = parseWireCalls(
      message["tool_calls"],
      `${at}.tool_calls`,
      place,
      () => `call_${numCalls++}`,
    );
    if (calls !== undefined) openCalls.push(...calls.map(({ id }) => id));
    const content = parseContent(message["content"], `${at}.content`, place, calls !== undefined);
    const name = optionalText(message["name"], `${at}.name`, place);
    const givenId = optionalText(message["tool_call_id"], `${at}.tool_call_id`, place);
    const callId = role === "tool" ? answeredCall(givenId, openCalls) : givenId;
    return {
      role,
      content,
      ...definedFields({ name, tool_call_id: callId, tool_calls: calls }),
    };
  });
}

/** The call that a tool's message answers, which is then no longer open. */
function answeredCall(callId: string | undefined, openCalls: string[]): string | undefined {
  if (callId === undefined) return openCalls.shift();
  const at = openCalls.indexOf(callId);
  if (at !== -1) openCalls.splice(at, 1);
  return callId;
}

function parseContent(value: unknown, at: string, place: Place, mayBeAbsent: boolean): string | null {
  if (typeof value === "string") return value;
  if ((value === undefined || value === null) && mayBeAbsent) return null;
  if (Array.isArray(value)) {
    return value
      .map((part: unknown, index) => {
        if (typeof part === "string") return part;
        if (isRecord(part) && part["type"] === "text" && typeof part["text"] === "string")
          return part["text"];
        const kind = isRecord(part) ? quoted(part["type"]) : quoted(part);
        throw invalidRecord(place, `${at}[${index}]`, `must be a text part, but is ${kind}`);
      })
      .join("\n");
  }
  throw invalidRecord(place, at, `must be text, but is ${quoted(value)}`);
}

function parseWireCalls(
  value: unknown,
  at: string,
  place: Place,
  nextId: () => string,
): readonly WireToolCall[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value))
    throw invalidRecord(place, at, `must be a list of calls, but is ${quoted(value)}`);
  if (value.length === 0) return undefined;
  return value.map((call: unknown, index): WireToolCall => {
    const { name, argumentsGiven, id } = calledFunction(call, `${at}[${index}]`, place);
    return {
      id: id ?? nextId(),
      type: "function",
      function: {
        name,
        arguments: typeof argumentsGiven === "string" ? argumentsGiven : JSON.stringify(argumentsGiven ?? {}),
      },
    };
  });
}

interface CalledFunction {
  readonly name: string;
  /** An object, or the text of one. */
  readonly argumentsGiven: unknown;
  readonly id: string | undefined;
}

/** A call as OpenAI writes it (`{function: {name, arguments}}`) or bare (`{name, arguments}`). */
export function calledFunction(call: unknown, at: string, place: Place): CalledFunction {
  if (!isRecord(call)) throw invalidRecord(place, at, `must be a call, but is ${quoted(call)}`);
  const called = isRecord(call["function"]) ? call["function"] : call;
  const name = called["name"];
  if (typeof name !== "string" || name === "") {
    throw invalidRecord(place, `${at}.name`, `must be the name of a function, but is ${quoted(name)}`);
  }
  const id = call["id"];
  return { name, argumentsGiven: called["arguments"], id: typeof id === "string" ? id : undefined };
}

function optionalText(value: unknown, at: string, place: Place): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw invalidRecord(place, at, `must be text, but is ${quoted(value)}`);
}
