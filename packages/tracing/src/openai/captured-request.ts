import { asArray, asObject, asObjects, asString, type JsonFields } from "@octavo/protocol";
import type { CapturedContent, CapturedMessage, MessagePart } from "../span/llm-span.js";
import type { CallKind } from "./call-kind.js";
import type { ContentBudget } from "./content-budget.js";

export type CapturedRequest = Omit<CapturedContent, "outputMessages">;

/** What a request said to the model, cut to the budget. Media are named, never copied. */
export function capturedRequest(kind: CallKind, body: JsonFields, budget: ContentBudget): CapturedRequest {
  const isConversation = kind === "chat" || kind === "responses";
  const messages = isConversation ? conversation(kind, body, budget) : [];
  const isSystem = ({ role }: CapturedMessage): boolean => role === "system" || role === "developer";
  const instructions = kind === "responses" ? asString(body["instructions"]) : undefined;
  return {
    systemInstructions: [
      ...(instructions === undefined ? [] : [textPart(instructions, budget)]),
      ...messages.filter(isSystem).flatMap(({ parts }) => parts),
    ],
    inputMessages: messages.filter((message) => !isSystem(message)),
    toolDefinitions: isConversation
      ? asObjects(body["tools"]).flatMap((tool) => budget.takeJson(tool) ?? [])
      : [],
    prompts: isConversation ? [] : prompts(kind === "embeddings" ? body["input"] : body["prompt"], budget),
  };
}

function conversation(kind: CallKind, body: JsonFields, budget: ContentBudget): readonly CapturedMessage[] {
  if (kind === "chat")
    return asObjects(body["messages"]).map((message) => capturedChatMessage(message, budget));
  const { input } = body;
  if (typeof input === "string") return [{ role: "user", parts: [textPart(input, budget)] }];
  return asObjects(input).map((item) => responsesItem(item, budget));
}

/** A chat message of a request or of an answer. */
export function capturedChatMessage(message: JsonFields, budget: ContentBudget): CapturedMessage {
  const role = asString(message["role"]) ?? "assistant";
  if (role === "tool") {
    const response = plainText(message["content"]);
    const part: MessagePart = {
      type: "tool_call_response",
      id: asString(message["tool_call_id"]),
      response: budget.take(response),
    };
    return { role, parts: [part] };
  }
  const reasoning = asString(message["reasoning_content"]) ?? asString(message["reasoning"]);
  const parts: MessagePart[] = [];
  if (reasoning !== undefined && reasoning !== "")
    parts.push({ type: "reasoning", content: budget.take(reasoning) });
  parts.push(...contentParts(message["content"], budget));
  for (const call of asObjects(message["tool_calls"])) {
    const called = asObject(call["function"]);
    parts.push({
      type: "tool_call",
      id: asString(call["id"]),
      name: asString(called?.["name"]) ?? "",
      arguments: budget.take(asString(called?.["arguments"]) ?? ""),
    });
  }
  return { role, parts };
}

/** An item of the Responses API, of its input or its output. */
export function responsesItem(item: JsonFields, budget: ContentBudget): CapturedMessage {
  const type = asString(item["type"]);
  if (type === "function_call") {
    const part: MessagePart = {
      type: "tool_call",
      id: asString(item["call_id"]),
      name: asString(item["name"]) ?? "",
      arguments: budget.take(asString(item["arguments"]) ?? ""),
    };
    return { role: "assistant", parts: [part] };
  }
  if (type === "function_call_output") {
    const response = budget.take(plainText(item["output"]));
    return {
      role: "tool",
      parts: [{ type: "tool_call_response", id: asString(item["call_id"]), response }],
    };
  }
  if (type === "reasoning") {
    const content = budget.take(plainText(item["summary"]) + plainText(item["content"]));
    return { role: "assistant", parts: [{ type: "reasoning", content }] };
  }
  return { role: asString(item["role"]) ?? "assistant", parts: contentParts(item["content"], budget) };
}

function contentParts(content: unknown, budget: ContentBudget): readonly MessagePart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content, budget)];
  return asObjects(content).map((part) => {
    const text = asString(part["text"]) ?? asString(part["refusal"]);
    return text === undefined
      ? { type: "media", kind: asString(part["type"]) ?? "unknown" }
      : textPart(text, budget);
  });
}

function textPart(text: string, budget: ContentBudget): MessagePart {
  return { type: "text", content: budget.take(text) };
}

function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  return asObjects(content)
    .map((part) => asString(part["text"]) ?? "")
    .join("");
}

/** One text, many, or token ids, which are not text. */
function prompts(value: unknown, budget: ContentBudget): readonly string[] {
  if (typeof value === "string") return [budget.take(value)];
  return asArray(value).flatMap((item) => (typeof item === "string" ? [budget.take(item)] : []));
}
