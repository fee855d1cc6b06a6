import { asArray, asObject, asObjects, asString, parseJson } from "@octavo/protocol";
import type { AnsweredToolCall } from "../answers/answer.js";

/** A message as a span recorded it. */
export interface RecordedMessage {
  readonly role: string;
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly AnsweredToolCall[];
  /** What tools answered, each with the id of its call. */
  readonly toolResponses: readonly { readonly id: string | undefined; readonly response: string }[];
  /** It had an image or the like, whose bytes no span keeps. */
  readonly hasMedia: boolean;
  readonly finishReason: string | undefined;
}

export interface RecordedContent {
  readonly asked: readonly RecordedMessage[];
  readonly answered: readonly RecordedMessage[];
  readonly tools: readonly unknown[];
}

type Facts = ReadonlyMap<string, unknown>;

/**
 * What a span recorded of the request and its answer: as OpenTelemetry's conventions have it (`gen_ai.input.messages` and its
 * like), as Octavo's store keeps it, or as OpenInference does (`llm.input_messages.0.message.role` or `input.value`). Undefined
 * where no content was captured.
 */
export function recordedContent(facts: Facts): RecordedContent | undefined {
  const found = ofStore(facts) ?? ofOpenTelemetry(facts) ?? ofOpenInference(facts) ?? ofValues(facts);
  return found === undefined || found.asked.length === 0 ? undefined : found;
}

/** The `content` of a row of the store: `CapturedContent` of packages/tracing. */
function ofStore(facts: Facts): RecordedContent | undefined {
  const content = asObject(facts.get("content"));
  if (content === undefined) return undefined;
  return {
    asked: [
      ...systemOf(content["systemInstructions"]),
      ...messagesOf(content["inputMessages"]),
      ...asArray(content["prompts"]).flatMap((prompt) =>
        typeof prompt === "string" ? [plain("user", prompt)] : [],
      ),
    ],
    answered: messagesOf(content["outputMessages"]),
    tools: asArray(content["toolDefinitions"]),
  };
}

function ofOpenTelemetry(facts: Facts): RecordedContent | undefined {
  const input = jsonOf(facts.get("gen_ai.input.messages"));
  if (!Array.isArray(input)) return undefined;
  return {
    asked: [...systemOf(jsonOf(facts.get("gen_ai.system_instructions"))), ...messagesOf(input)],
    answered: messagesOf(jsonOf(facts.get("gen_ai.output.messages"))),
    tools: asArray(jsonOf(facts.get("gen_ai.tool.definitions"))),
  };
}

function ofOpenInference(facts: Facts): RecordedContent | undefined {
  const asked = flattened(facts, "llm.input_messages");
  const prompts = indexed(facts, (index) => `llm.prompts.${index}.prompt.text`);
  if (asked.length + prompts.length === 0) return undefined;
  const schemas = indexed(facts, (index) => `llm.tools.${index}.tool.json_schema`);
  return {
    asked: [...asked, ...prompts.map((prompt) => plain("user", String(prompt)))],
    answered: flattened(facts, "llm.output_messages"),
    tools: schemas.map(jsonOf),
  };
}

/** Nothing but one text in and one text out. */
function ofValues(facts: Facts): RecordedContent | undefined {
  const [input, output] = [facts.get("input.value"), facts.get("output.value")];
  if (typeof input !== "string" || typeof output !== "string") return undefined;
  const messages = asObject(jsonOf(input))?.["messages"];
  return {
    asked: Array.isArray(messages) ? messagesOf(messages) : [plain("user", input)],
    answered: [plain("assistant", output)],
    tools: [],
  };
}

function flattened(facts: Facts, prefix: string): readonly RecordedMessage[] {
  const messages: RecordedMessage[] = [];
  for (let index = 0; facts.has(`${prefix}.${index}.message.role`); index++) {
    const at = `${prefix}.${index}.message`;
    const text = (name: string): string | undefined => asString(facts.get(`${at}.${name}`));
    const role = text("role") ?? "user";
    const content = text("content") ?? "";
    const toolCalls: AnsweredToolCall[] = [];
    for (let call = 0; ; call++) {
      const name = text(`tool_calls.${call}.tool_call.function.name`);
      if (name === undefined) break;
      toolCalls.push({
        id: text(`tool_calls.${call}.tool_call.id`) ?? "",
        name,
        arguments: text(`tool_calls.${call}.tool_call.function.arguments`) ?? "{}",
      });
    }
    const isTool = role === "tool";
    messages.push({
      ...plain(role, isTool ? "" : content),
      toolCalls,
      toolResponses: isTool ? [{ id: text("tool_call_id"), response: content }] : [],
      hasMedia: facts.has(`${at}.contents.0.message_content.type`),
    });
  }
  return messages;
}

function indexed(facts: Facts, name: (index: number) => string): readonly unknown[] {
  const found: unknown[] = [];
  for (let index = 0; facts.has(name(index)); index++) found.push(facts.get(name(index)));
  return found;
}

function systemOf(parts: unknown): readonly RecordedMessage[] {
  return asArray(parts).length === 0 ? [] : [ofParts("system", parts)];
}

function messagesOf(value: unknown): readonly RecordedMessage[] {
  return asObjects(value).map((message) => {
    const content = message["parts"] ?? message["content"];
    const role = asString(message["role"]) ?? "user";
    const read = typeof content === "string" ? plain(role, content) : ofParts(role, content);
    const finishReason = asString(message["finish_reason"]) ?? asString(message["finishReason"]);
    return { ...read, finishReason };
  });
}

/** Parts as OpenTelemetry's message schema names them, and text parts of OpenAI's. */
function ofParts(role: string, value: unknown): RecordedMessage {
  const texts: string[] = [];
  const reasoning: string[] = [];
  const toolCalls: AnsweredToolCall[] = [];
  const toolResponses: { id: string | undefined; response: string }[] = [];
  let hasMedia = false;
  for (const part of asObjects(value)) {
    const content = asString(part["content"]) ?? asString(part["text"]);
    const id = asString(part["id"]);
    const type = part["type"];
    if (type === "tool_call")
      toolCalls.push({
        id: id ?? "",
        name: asString(part["name"]) ?? "",
        arguments: jsonText(part["arguments"] ?? {}),
      });
    else if (type === "tool_call_response")
      toolResponses.push({ id, response: jsonText(part["response"] ?? "") });
    else if (content === undefined) hasMedia = true;
    else if (type === "reasoning") reasoning.push(content);
    else texts.push(content);
  }
  return {
    role,
    text: texts.join(""),
    reasoning: reasoning.join(""),
    toolCalls,
    toolResponses,
    hasMedia,
    finishReason: undefined,
  };
}

function plain(role: string, text: string): RecordedMessage {
  return {
    role,
    text,
    reasoning: "",
    toolCalls: [],
    toolResponses: [],
    hasMedia: false,
    finishReason: undefined,
  };
}

/** Attributes hold JSON as text; rows and exports may hold the value. */
function jsonOf(value: unknown): unknown {
  return typeof value === "string" ? parseJson(value)?.value : value;
}

function jsonText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
