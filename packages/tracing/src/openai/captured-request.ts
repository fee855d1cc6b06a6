import type { CapturedContent, CapturedMessage, MessagePart } from "../span/llm-span.js";
import type { CallKind } from "./call-kind.js";
import type { ContentBudget } from "./content-budget.js";
import { type Fields, fieldsOf, listOf, objectsOf, textOf } from "./fields.js";

export type CapturedRequest = Omit<CapturedContent, "outputMessages">;

/** What a request said to the model, cut to the budget. Media are named, never copied. */
export function capturedRequest(kind: CallKind, body: Fields, budget: ContentBudget): CapturedRequest {
  const isConversation = kind === "chat" || kind === "responses";
  const messages = isConversation ? conversation(kind, body, budget) : [];
  const isSystem = ({ role }: CapturedMessage): boolean => role === "system" || role === "developer";
  const instructions = kind === "responses" ? textOf(body["instructions"]) : undefined;
  return {
    systemInstructions: [
      ...(instructions === undefined ? [] : [textPart(instructions, budget)]),
      ...messages.filter(isSystem).flatMap(({ parts }) => parts),
    ],
    inputMessages: messages.filter((message) => !isSystem(message)),
    toolDefinitions: isConversation ? objectsOf(body["tools"]).filter((tool) => budget.takeJson(tool)) : [],
    prompts: isConversation ? [] : prompts(kind === "embeddings" ? body["input"] : body["prompt"], budget),
  };
}

function conversation(kind: CallKind, body: Fields, budget: ContentBudget): readonly CapturedMessage[] {
  if (kind === "chat") return objectsOf(body["messages"]).map((message) => chatMessage(message, budget));
  const { input } = body;
  if (typeof input === "string") return [{ role: "user", parts: [textPart(input, budget)] }];
  return objectsOf(input).map((item) => responsesItem(item, budget));
}

/** A chat message of a request or of an answer. */
export function chatMessage(message: Fields, budget: ContentBudget): CapturedMessage {
  const role = textOf(message["role"]) ?? "assistant";
  if (role === "tool") {
    const response = plainText(message["content"]);
    const part: MessagePart = {
      type: "tool_call_response",
      id: textOf(message["tool_call_id"]),
      response: budget.take(response),
    };
    return { role, parts: [part] };
  }
  const reasoning = textOf(message["reasoning_content"]) ?? textOf(message["reasoning"]);
  const parts: MessagePart[] = [];
  if (reasoning !== undefined && reasoning !== "")
    parts.push({ type: "reasoning", content: budget.take(reasoning) });
  parts.push(...contentParts(message["content"], budget));
  for (const call of objectsOf(message["tool_calls"])) {
    const called = fieldsOf(call["function"]);
    parts.push({
      type: "tool_call",
      id: textOf(call["id"]),
      name: textOf(called?.["name"]) ?? "",
      arguments: budget.take(textOf(called?.["arguments"]) ?? ""),
    });
  }
  return { role, parts };
}

/** An item of the Responses API, of its input or its output. */
export function responsesItem(item: Fields, budget: ContentBudget): CapturedMessage {
  const type = textOf(item["type"]);
  if (type === "function_call") {
    const part: MessagePart = {
      type: "tool_call",
      id: textOf(item["call_id"]),
      name: textOf(item["name"]) ?? "",
      arguments: budget.take(textOf(item["arguments"]) ?? ""),
    };
    return { role: "assistant", parts: [part] };
  }
  if (type === "function_call_output") {
    const response = budget.take(plainText(item["output"]));
    return {
      role: "tool",
      parts: [{ type: "tool_call_response", id: textOf(item["call_id"]), response }],
    };
  }
  if (type === "reasoning") {
    const content = budget.take(plainText(item["summary"]) + plainText(item["content"]));
    return { role: "assistant", parts: [{ type: "reasoning", content }] };
  }
  return { role: textOf(item["role"]) ?? "assistant", parts: contentParts(item["content"], budget) };
}

function contentParts(content: unknown, budget: ContentBudget): readonly MessagePart[] {
  if (typeof content === "string") return content === "" ? [] : [textPart(content, budget)];
  return objectsOf(content).map((part) => {
    const text = textOf(part["text"]) ?? textOf(part["refusal"]);
    return text === undefined
      ? { type: "media", kind: textOf(part["type"]) ?? "unknown" }
      : textPart(text, budget);
  });
}

function textPart(text: string, budget: ContentBudget): MessagePart {
  return { type: "text", content: budget.take(text) };
}

function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  return objectsOf(content)
    .map((part) => textOf(part["text"]) ?? "")
    .join("");
}

/** One text, many, or token ids, which are not text. */
function prompts(value: unknown, budget: ContentBudget): readonly string[] {
  if (typeof value === "string") return [budget.take(value)];
  return listOf(value).flatMap((item) => (typeof item === "string" ? [budget.take(item)] : []));
}
