import type { Operation } from "../exchange/exchange.js";

/** Endpoints that are passed on to targets. */
export const operationPaths: ReadonlyMap<string, Operation> = new Map([
  ["/v1/chat/completions", "chat"],
  ["/v1/completions", "completions"],
  ["/v1/embeddings", "embeddings"],
  ["/v1/responses", "responses"],
  ["/v1/messages", "messages"],
  ["/v1/rerank", "rerank"],
  ["/v1/score", "score"],
]);
