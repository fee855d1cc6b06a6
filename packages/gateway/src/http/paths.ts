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

/** Endpoints that the gateway answers itself, by GET, and who may ask: everybody, or whoever could make a call. */
export const ownPaths: ReadonlyMap<string, "public" | "caller"> = new Map([
  ["/health", "public"],
  ["/v1/models", "caller"],
]);

/** Endpoints of the admin port beside those of stages. */
export const adminPaths = ["GET /metrics", "GET /admin/targets", "POST /admin/reload"] as const;
