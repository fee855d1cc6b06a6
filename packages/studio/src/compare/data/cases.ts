import { isRecord, OctavoError } from "@octavo/protocol";
import { type JsonLine, readJsonLines } from "../../json-lines.js";

/** A message as chat templates take it; arguments of tool calls are objects. */
export interface DataMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly CaseToolCall[];
  readonly [key: string]: unknown;
}

export interface CaseToolCall {
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: unknown };
  readonly [key: string]: unknown;
}

/** One line of a data file. */
export type Case =
  /** Every assistant message is scored; with a completion, that alone, as the answer to the messages. */
  | {
      readonly kind: "conversation";
      readonly line: number;
      readonly messages: readonly DataMessage[];
      readonly tools: readonly unknown[];
      readonly completion: string | undefined;
    }
  | {
      readonly kind: "completion";
      readonly line: number;
      readonly prompt: string;
      readonly completion: string;
    }
  | { readonly kind: "text"; readonly line: number; readonly text: string };

/**
 * Cases from JSON lines: `{messages, tools?}`, `{messages, tools?, completion}` (octavo-mini's generator says `gold`),
 * `{prompt, completion}` or `{text}`.
 * @throws OctavoError `invalid_option` that names the line
 */
export function parseCases(content: Buffer, path: string, limit = Infinity): Case[] {
  const refuse = (line: number, problem: string, cause?: unknown): OctavoError =>
    new OctavoError("invalid_option", `${path}:${line} ${problem}`, { param: "data", cause });
  const cases: Case[] = [];
  for (const { line, record } of readJsonLines(content, refuse)) {
    cases.push(parseCase(record, line, (problem, cause) => refuse(line, problem, cause)));
    if (cases.length >= limit) break;
  }
  if (cases.length === 0)
    throw new OctavoError("invalid_option", `${path} holds no cases`, { param: "data" });
  return cases;
}

type Bad = (problem: string, cause?: unknown) => OctavoError;

function parseCase(value: JsonLine["record"], line: number, bad: Bad): Case {
  const completion = optionalText(value, "completion", bad) ?? optionalText(value, "gold", bad);
  if (value["messages"] !== undefined) {
    const messages = parseMessages(value["messages"], bad);
    const tools = value["tools"] ?? [];
    if (!Array.isArray(tools) || !tools.every(isRecord)) throw bad('has "tools" that are no list of objects');
    if (completion === undefined && !messages.some(({ role }) => role === "assistant")) {
      throw bad('has no assistant message to score, and no "completion"');
    }
    if (completion === "") throw bad('has an empty "completion"');
    return { kind: "conversation", line, messages, tools, completion };
  }
  const prompt = optionalText(value, "prompt", bad);
  if (prompt !== undefined) {
    if (completion === undefined || completion === "")
      throw bad('has a "prompt" without a "completion" to score');
    return { kind: "completion", line, prompt, completion };
  }
  const plain = optionalText(value, "text", bad);
  if (plain === undefined) throw bad('has neither "messages" nor "prompt" nor "text"');
  if (plain === "") throw bad('has an empty "text"');
  return { kind: "text", line, text: plain };
}

function parseMessages(value: unknown, bad: Bad): DataMessage[] {
  if (!Array.isArray(value) || value.length === 0)
    throw bad('has "messages" that are no list, or an empty one');
  return value.map((message: unknown, index) => {
    const where = `messages[${index}]`;
    if (!isRecord(message)) throw bad(`has ${where} that is no object`);
    const { role, content, tool_calls: calls, ...rest } = message;
    if (typeof role !== "string" || role === "") throw bad(`has ${where} without a role`);
    const toolCalls = calls === undefined || calls === null ? undefined : parseCalls(calls, where, bad);
    return {
      ...rest,
      role,
      content: flatten(content, where, bad, toolCalls !== undefined),
      ...(toolCalls !== undefined && { tool_calls: toolCalls }),
    };
  });
}

/** Text, or text parts, which are joined. */
function flatten(content: unknown, where: string, bad: Bad, mayBeAbsent: boolean): string | null {
  if (typeof content === "string") return content;
  if ((content === undefined || content === null) && mayBeAbsent) return null;
  if (Array.isArray(content)) {
    const texts = content.map((part: unknown) =>
      isRecord(part) && part["type"] === "text" ? part["text"] : undefined,
    );
    if (texts.every((text) => typeof text === "string")) return texts.join("\n");
    throw bad(`has ${where}.content with a part that is no text`);
  }
  throw bad(`has ${where} without a content`);
}

function parseCalls(value: unknown, where: string, bad: Bad): CaseToolCall[] {
  if (!Array.isArray(value)) throw bad(`has ${where}.tool_calls that are no list`);
  return value.map((call: unknown, index) => {
    const at = `${where}.tool_calls[${index}]`;
    const called = isRecord(call) ? call["function"] : undefined;
    if (!isRecord(call) || !isRecord(called) || typeof called["name"] !== "string") {
      throw bad(`has ${at} without a function name`);
    }
    return {
      ...call,
      type: "function",
      function: { ...called, name: called["name"], arguments: parseArguments(called["arguments"], at, bad) },
    };
  });
}

/** OpenAI's wire carries arguments as JSON text; templates iterate over an object. */
function parseArguments(given: unknown, at: string, bad: Bad): unknown {
  if (typeof given !== "string") return given ?? {};
  try {
    return JSON.parse(given === "" ? "{}" : given);
  } catch (error) {
    throw bad(`has ${at}.function.arguments that are not JSON`, error);
  }
}

function optionalText(record: Readonly<Record<string, unknown>>, name: string, bad: Bad): string | undefined {
  const value = record[name];
  if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
  throw bad(`has a "${name}" that is no text`);
}
