import type { LlmOperation } from "../span/llm-span.js";

/** The calls of OpenAI's API that run a model. */
export type CallKind = "chat" | "completions" | "responses" | "embeddings";

const kindsByPath: ReadonlyMap<string, CallKind> = new Map([
  ["/chat/completions", "chat"],
  ["/completions", "completions"],
  ["/responses", "responses"],
  ["/embeddings", "embeddings"],
]);

export const operationOf: Readonly<Record<CallKind, LlmOperation>> = {
  chat: "chat",
  completions: "text_completion",
  responses: "chat",
  embeddings: "embeddings",
};

/** Undefined for everything else: lists, files, stored responses. */
export function callKindOf(method: unknown, path: unknown): CallKind | undefined {
  return method === "post" && typeof path === "string" ? kindsByPath.get(path) : undefined;
}
