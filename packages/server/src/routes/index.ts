import {
  chatBatchRequest,
  chatCompletionRequest,
  completionRequest,
  countTokensRequest,
  detokenizeRequest,
  embeddingRequest,
  loadLoraRequest,
  messagesRequest,
  rerankRequest,
  responsesRequest,
  scoreRequest,
  tokenizeRequest,
  toMessagesErrorBody,
  unloadLoraRequest,
} from "@octavo/protocol";
import { sendJson } from "../http/respond.js";
import type { Route } from "../http/router.js";
import type { Service } from "../service.js";
import { handleChatBatch } from "./chat-batch.js";
import { handleChat } from "./chat.js";
import { handleCompletions } from "./completions.js";
import { handleEmbeddings } from "./embeddings.js";
import { faultRoutes } from "./fault-injection.js";
import { handleLoadLora, handleUnloadLora } from "./lora.js";
import { handleCountTokens, handleMessages } from "./messages.js";
import { openApiDocument } from "./openapi.js";
import { handleModel, handleModels } from "./models.js";
import { handleServingRecord } from "./requests.js";
import { handleCancelResponse, handleResponse, handleResponses } from "./responses.js";
import { handleRerank, handleScore } from "./scoring.js";
import { handleHealth, handleLoad, handleMetrics, handlePing, handleVersion } from "./status.js";
import { handleDetokenize, handleTokenize } from "./tokenize.js";

/** Every endpoint of the server. */
export function serverRoutes(
  service: Service,
  { enableFaultInjection }: { readonly enableFaultInjection: boolean },
): readonly Route[] {
  const key = "key";
  const open = "open";
  const routes: readonly Route[] = [
    {
      method: "POST",
      path: "/v1/chat/completions",
      access: key,
      summary: "Answers a conversation, at once or as a stream.",
      request: chatCompletionRequest,
      handle: (context) => handleChat(service, context),
    },
    {
      method: "POST",
      path: "/v1/chat/completions/batch",
      access: key,
      summary: "Answers several conversations, each with a choice.",
      request: chatBatchRequest,
      handle: (context) => handleChatBatch(service, context),
    },
    {
      method: "POST",
      path: "/v1/completions",
      access: key,
      summary: "Continues one prompt or many.",
      request: completionRequest,
      handle: (context) => handleCompletions(service, context),
    },
    {
      method: "POST",
      path: "/v1/responses",
      access: key,
      summary: "OpenAI's Responses API, at once, as a stream or in the background.",
      request: responsesRequest,
      handle: (context) => handleResponses(service, context),
    },
    {
      method: "GET",
      path: "/v1/responses/*",
      access: key,
      summary: "A stored response by its id.",
      handle: (context, id) => handleResponse(service, context, id),
    },
    {
      method: "POST",
      path: "/v1/responses/*",
      access: key,
      summary: "`ID/cancel`: ends one that runs in the background.",
      handle: (context, rest) => handleCancelResponse(service, context, rest),
    },
    {
      method: "POST",
      path: "/v1/messages",
      access: key,
      summary: "Anthropic's Messages API, at once or as a stream.",
      request: messagesRequest,
      errorBody: toMessagesErrorBody,
      handle: (context) => handleMessages(service, context),
    },
    {
      method: "POST",
      path: "/v1/messages/count_tokens",
      access: key,
      summary: '`{"input_tokens": n}` of such a request.',
      request: countTokensRequest,
      errorBody: toMessagesErrorBody,
      handle: (context) => handleCountTokens(service, context),
    },
    {
      method: "POST",
      path: "/v1/embeddings",
      access: key,
      summary: "Vectors for one input or many.",
      request: embeddingRequest,
      handle: (context) => handleEmbeddings(service, context),
    },
    {
      method: "POST",
      path: "/score",
      access: key,
      summary: "How alike texts are.",
      request: scoreRequest,
      handle: (context) => handleScore(service, context),
    },
    {
      method: "POST",
      path: "/v1/score",
      access: key,
      summary: "As `/score`.",
      request: scoreRequest,
      handle: (context) => handleScore(service, context),
    },
    {
      method: "POST",
      path: "/rerank",
      access: key,
      summary: "Documents by how well they fit a query.",
      request: rerankRequest,
      handle: (context) => handleRerank(service, context),
    },
    {
      method: "POST",
      path: "/v1/rerank",
      access: key,
      summary: "As `/rerank`.",
      request: rerankRequest,
      handle: (context) => handleRerank(service, context),
    },
    {
      method: "POST",
      path: "/v2/rerank",
      access: key,
      summary: "As `/rerank`.",
      request: rerankRequest,
      handle: (context) => handleRerank(service, context),
    },
    {
      method: "GET",
      path: "/v1/models",
      access: key,
      summary: "The served names and adapters, with `max_model_len`.",
      handle: (context) => handleModels(service, context),
    },
    {
      method: "GET",
      path: "/v1/models/*",
      access: key,
      summary: "One of them; slashes in the name may be escaped or not.",
      handle: (context, id) => handleModel(service, context, id),
    },
    {
      method: "GET",
      path: "/v1/requests/*",
      access: key,
      summary:
        "How a recent request was served and why its tokens were slow, by its `x-octavo-request-id`; `ID/neighbours`: who was there beside it.",
      handle: (context, id) => handleServingRecord(service, context, id),
    },
    {
      method: "POST",
      path: "/v1/load_lora_adapter",
      access: key,
      summary: "Serves a LoRA adapter under a name of its own; only with `--allow-runtime-lora-updating`.",
      request: loadLoraRequest,
      handle: (context) => handleLoadLora(service, context),
    },
    {
      method: "POST",
      path: "/v1/unload_lora_adapter",
      access: key,
      summary: "Serves it no longer; requests that run under it end with it.",
      request: unloadLoraRequest,
      handle: (context) => handleUnloadLora(service, context),
    },
    ...(enableFaultInjection ? faultRoutes(service) : []),
    {
      method: "POST",
      path: "/tokenize",
      access: key,
      summary: "Text or messages to token ids.",
      request: tokenizeRequest,
      handle: (context) => handleTokenize(service, context),
    },
    {
      method: "POST",
      path: "/detokenize",
      access: key,
      summary: "Token ids to text, special tokens kept.",
      request: detokenizeRequest,
      handle: (context) => handleDetokenize(service, context),
    },
    {
      method: "GET",
      path: "/health",
      access: open,
      summary: "200 while requests are taken; 503 while draining and after the engine failed.",
      handle: (context) => handleHealth(service, context),
    },
    {
      method: "GET",
      path: "/ping",
      access: open,
      summary: "As `/health`.",
      handle: (context) => handlePing(service, context),
    },
    {
      method: "POST",
      path: "/ping",
      access: open,
      summary: "As `/health`.",
      handle: (context) => handlePing(service, context),
    },
    {
      method: "GET",
      path: "/version",
      access: open,
      summary: '`{"version": "..."}`',
      handle: (context) => handleVersion(service, context),
    },
    {
      method: "GET",
      path: "/load",
      access: open,
      summary: '`{"server_load": n}`: requests being answered.',
      handle: (context) => handleLoad(service, context),
    },
    {
      method: "GET",
      path: "/metrics",
      access: open,
      summary: "Prometheus' text format.",
      handle: (context) => handleMetrics(service, context),
    },
    {
      method: "GET",
      path: "/openapi.json",
      access: open,
      summary: "This list as an OpenAPI 3.1 document, with every request's fields.",
      handle: (context) => sendJson(context.response, 200, openApiDocument(routes)),
    },
  ];
  return routes;
}
