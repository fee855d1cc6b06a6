import { toMessagesErrorBody } from "@octavo/protocol";
import type { Route } from "../http/router.js";
import type { Service } from "../service.js";
import { handleChat } from "./chat.js";
import { handleCompletions } from "./completions.js";
import { handleEmbeddings } from "./embeddings.js";
import { handleCountTokens, handleMessages } from "./messages.js";
import { handleModel, handleModels } from "./models.js";
import { handleCancelResponse, handleResponse, handleResponses } from "./responses.js";
import { handleRerank, handleScore } from "./scoring.js";
import { handleHealth, handleLoad, handleMetrics, handlePing, handleVersion } from "./status.js";
import { handleDetokenize, handleTokenize } from "./tokenize.js";

/** Every endpoint of the server. */
export function serverRoutes(service: Service): readonly Route[] {
  const key = "key";
  const open = "open";
  return [
    {
      method: "POST",
      path: "/v1/chat/completions",
      access: key,
      handle: (context) => handleChat(service, context),
    },
    {
      method: "POST",
      path: "/v1/completions",
      access: key,
      handle: (context) => handleCompletions(service, context),
    },
    {
      method: "POST",
      path: "/v1/responses",
      access: key,
      handle: (context) => handleResponses(service, context),
    },
    {
      method: "GET",
      path: "/v1/responses/*",
      access: key,
      handle: (context, id) => handleResponse(service, context, id),
    },
    {
      method: "POST",
      path: "/v1/responses/*",
      access: key,
      handle: (context, rest) => handleCancelResponse(service, context, rest),
    },
    {
      method: "POST",
      path: "/v1/messages",
      access: key,
      errorBody: toMessagesErrorBody,
      handle: (context) => handleMessages(service, context),
    },
    {
      method: "POST",
      path: "/v1/messages/count_tokens",
      access: key,
      errorBody: toMessagesErrorBody,
      handle: (context) => handleCountTokens(service, context),
    },
    {
      method: "POST",
      path: "/v1/embeddings",
      access: key,
      handle: (context) => handleEmbeddings(service, context),
    },
    ...["/score", "/v1/score"].map((path): Route => ({
      method: "POST",
      path,
      access: key,
      handle: (context) => handleScore(service, context),
    })),
    ...["/rerank", "/v1/rerank", "/v2/rerank"].map((path): Route => ({
      method: "POST",
      path,
      access: key,
      handle: (context) => handleRerank(service, context),
    })),
    { method: "GET", path: "/v1/models", access: key, handle: (context) => handleModels(service, context) },
    {
      method: "GET",
      path: "/v1/models/*",
      access: key,
      handle: (context, id) => handleModel(service, context, id),
    },
    { method: "POST", path: "/tokenize", access: key, handle: (context) => handleTokenize(service, context) },
    {
      method: "POST",
      path: "/detokenize",
      access: key,
      handle: (context) => handleDetokenize(service, context),
    },
    { method: "GET", path: "/health", access: open, handle: (context) => handleHealth(service, context) },
    { method: "GET", path: "/ping", access: open, handle: (context) => handlePing(service, context) },
    { method: "POST", path: "/ping", access: open, handle: (context) => handlePing(service, context) },
    { method: "GET", path: "/version", access: open, handle: (context) => handleVersion(service, context) },
    { method: "GET", path: "/load", access: open, handle: (context) => handleLoad(service, context) },
    { method: "GET", path: "/metrics", access: open, handle: (context) => handleMetrics(service, context) },
  ];
}
