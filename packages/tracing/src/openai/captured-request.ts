import type { CapturedContent, CapturedMessage, MessagePart } from "../span/llm-span.js";
import type { CallKind } from "./call-kind.js";
import type { ContentBudget } from "./content-budget.js";
import { type JsonFields, asFields, asList, asObjects, asText } from "./fields.js";

export type CapturedRequest = Omit<CapturedContent, "outputMessages">;

/** What a request said to the model, cut to the budget. Media are named, never copied. */
export function capturedRequest(kind: CallKind, body: JsonFields, budget: ContentBudget): CapturedRequest {
  const isConversation = kind === "chat" || kind === "responses";
  const messages = isConversation ? conversation(kind, body, budget) : [];
  const isSystem = ({ role }: CapturedMessage): boolean => role === "system" || role === "developer";
  const instructions = kind === "responses" ? asText(body["instructions"]) : undefined;
  return {
    systemInstructions: [
      ...(instructions === undefined ? [] : [textPart(instructions, budget)]),
      ...messages.filter(isSystem).flatMap(({ parts }) => parts),
    ],
    inputMessages: messages.filter((message) => !isSystem(message)),
    toolDefinitions: isConversation ? asObjects(body["tools"]).filter((tool) => budget.takeJson(tool)) : [],
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
  const role = asText(message["role"]) ?? "assistant";
  if (role === "tool") {
    const response = plainText(message["content"]);
    const part: MessagePart = {
      type: "tool_call_response",
      id: asText(message["tool_call_id"]),
      response: budget.take(response),
    };
    return { role, parts: [part] };
  }
  const reasoning = asText(message["reasoning_content"]) ?? asText(message["reasoning"]);
  const parts: MessagePart[] = [];
  if (reasoning !== undefined && reasoning !== "")
    parts.push({ type: "reasoning", content: budget.take(reasoning) });
  parts.push(...contentParts(message["content"], budget));
  for (const call of asObjects(message["tool_calls"])) {
    const called = asFields(call["function"]);
    parts.push({
      type: "tool_call",
      id: asText(call["id"]),
      name: asText(called?.["name"]) ?? "",
      arguments: budget.take(asText(called?.["arguments"]) ?? ""),
    });
  }
  return { role, parts };
}

/** An item of the Responses API, of its input or its output. */
export function responsesItem(item: JsonFields, budget: ContentBudget): CapturedMessage {
  const type = asText(item["type"]);
  if (type === "function_call") {
    const part: MessagePart = {
      type: "tool_call",
      id: asText(item["call_id"]),
      name: asText(item["name"]) ?? "",
      arguments: budget.take(asText(item["arguments"]) ?? ""),
    };
    return { role: "assistant", parts: [part] };
  }
  if (type === "function_call_output") {
    const response = budget.take(plainText(item["output"]));
    return {
      role: "tool",
      parts: [{ type: "tool_call_response", id: asText(item["call_id"]), response }],
    };
  }
  if (type === "reasoning") {
    const content = budget.take(plainText(item["summary"]) + plainText(item["content"]));
    return { role: "assistant", parts: [{ type: "reasoning", content }] };
  }
  return { role: asText(item["role"]) ?? "assistant", parts: contentParts(item["content"], budget) };
}

function contentParts(content: unknown, budget: ContentBudget): readonly MessagePart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content, budget)];
  return asObjects(content).map((part) => {
    const text = asText(part["text"]) ?? asText(part["refusal"]);
    return text === undefined
      ? { type: "media", kind: asText(part["type"]) ?? "unknown" }
      : textPart(text, budget);
  });
}

function textPart(text: string, budget: ContentBudget): MessagePart {
  return { type: "text", content: budget.take(text) };
}

function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  return asObjects(content)
    .map((part) => asText(part["text"]) ?? "")
    .join("");
}

/** One text, many, or token ids, which are not text. */
function prompts(value: unknown, budget: ContentBudget): readonly string[] {
  if (typeof value === "string") return [budget.take(value)];
  return asList(value).flatMap((item) => (typeof item === "string" ? [budget.take(item)] : []));
}
