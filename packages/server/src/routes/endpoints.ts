import {
  fieldsWithEffect,
  chatBatchRequest,
  chatCompletionRequest,
  completionRequest,
  countTokensRequest,
  detokenizeRequest,
  embeddingRequest,
  faultInjectionRequest,
  loadLoraRequest,
  messagesRequest,
  rerankRequest,
  responsesRequest,
  scoreRequest,
  tokenizeRequest,
  toMessagesErrorBody,
  unloadLoraRequest,
} from "@octavo/protocol";
import type { ServerConfig } from "../config.js";
import { sendJson } from "../http/respond.js";
import type { Route } from "../http/router.js";
import type { ServedModels } from "../models/served-models.js";
import { handleChatBatch } from "./chat-batch.js";
import { handleChat } from "./chat.js";
import { handleCompletions } from "./completions.js";
import { handleEmbeddings } from "./embeddings.js";
import { type Endpoint, endpoint, endpointWithBody, endpointWithId } from "./endpoint.js";
import { handleAddFault, handleClearFault, handleClearFaults, handleFaults } from "./fault-injection.js";
import { changeableAdapters, handleLoadLora, handleUnloadLora } from "./lora.js";
import { handleCountTokens, handleMessages } from "./messages.js";
import { openApiDocument } from "./openapi.js";
import { handleModel, handleModels } from "./models.js";
import { prefixCacheEndpoints } from "./prefix-cache.js";
import { handleServingRecord } from "./requests.js";
import { handleCancelResponse, handleResponse, handleResponses } from "./responses.js";
import { handleRerank, handleScore } from "./scoring.js";
import { handleServerInfo } from "./server-info.js";
import { handleHealth, handleLoad, handleMetrics, handleVersion } from "./status.js";
import { handleDetokenize, handleTokenize } from "./tokenize.js";
import { vllmEndpoints } from "./vllm-endpoints.js";

/**
 * Every endpoint, one row each. Routing, authentication, spans, metrics labels, the OpenAPI document and the table of
 * docs/reference/http.md are made from it.
 */
export const endpoints: readonly Endpoint[] = [
  endpointWithBody({
    method: "POST",
    path: "/v1/chat/completions",
    access: "tenant",
    span: "chat",
    answer: "json or events",
    summary: "Answers a conversation, at once or as a stream.",
    request: chatCompletionRequest,
    handle: handleChat,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/chat/completions/batch",
    access: "tenant",
    span: "chat",
    answer: "json",
    summary: "Answers several conversations, each with a choice.",
    request: chatBatchRequest,
    handle: handleChatBatch,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/completions",
    access: "tenant",
    span: "text_completion",
    answer: "json or events",
    summary: "Continues one prompt or many.",
    request: completionRequest,
    handle: handleCompletions,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/responses",
    access: "tenant",
    span: "chat",
    answer: "json or events",
    summary: "OpenAI's Responses API, at once, as a stream or in the background.",
    request: responsesRequest,
    handle: handleResponses,
  }),
  endpointWithId({
    method: "GET",
    path: "/v1/responses/*",
    access: "tenant",
    ids: "caller",
    span: "none",
    answer: "json",
    summary: "A stored response by its id.",
    handle: handleResponse,
  }),
  endpointWithId({
    method: "POST",
    path: "/v1/responses/*",
    access: "tenant",
    ids: "caller",
    span: "none",
    answer: "json",
    summary: "`ID/cancel`: cancels a response that runs in the background.",
    handle: handleCancelResponse,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/messages",
    access: "tenant",
    span: "chat",
    answer: "json or events",
    summary: "Anthropic's Messages API, at once or as a stream.",
    request: messagesRequest,
    errorBody: toMessagesErrorBody,
    handle: handleMessages,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/messages/count_tokens",
    access: "tenant",
    span: "none",
    answer: "json",
    summary: 'Counts the prompt tokens of such a request: `{"input_tokens": n}`.',
    request: countTokensRequest,
    errorBody: toMessagesErrorBody,
    handle: handleCountTokens,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/embeddings",
    access: "tenant",
    span: "embeddings",
    answer: "json",
    summary: "Embeddings of one input or many.",
    request: embeddingRequest,
    handle: handleEmbeddings,
  }),
  ...vllmEndpoints,
  ...prefixCacheEndpoints,
  endpointWithBody({
    method: "POST",
    path: "/score",
    aliases: ["/v1/score"],
    access: "tenant",
    span: "rerank",
    answer: "json",
    summary: "Scores of pairs of texts: from the model's head, or cosines of their embeddings.",
    request: scoreRequest,
    handle: handleScore,
  }),
  endpointWithBody({
    method: "POST",
    path: "/rerank",
    aliases: ["/v1/rerank", "/v2/rerank"],
    access: "tenant",
    span: "rerank",
    answer: "json",
    summary: "Ranks documents by their scores with a query.",
    request: rerankRequest,
    handle: handleRerank,
  }),
  endpoint({
    method: "GET",
    path: "/v1/models",
    access: "tenant",
    span: "none",
    answer: "json",
    summary: "The served names and adapters, with `max_model_len`.",
    handle: handleModels,
  }),
  endpointWithId({
    method: "GET",
    path: "/v1/models/*",
    access: "tenant",
    ids: "shared",
    span: "none",
    answer: "json",
    summary: "One of them; slashes in the name may be escaped or not.",
    handle: handleModel,
  }),
  endpointWithId({
    method: "GET",
    path: "/v1/requests/*",
    access: "tenant",
    ids: "caller",
    span: "none",
    answer: "json",
    summary:
      "How a recent request was served and why its tokens were slow, by its `x-octavo-request-id`; `ID/neighbours`: the requests that ran beside it.",
    handle: handleServingRecord,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/load_lora_adapter",
    access: "admin",
    span: "none",
    answer: "text",
    summary: "Loads a LoRA adapter under a name of its own; only with `--allow-runtime-lora-updating`.",
    request: loadLoraRequest,
    precondition: changeableAdapters,
    handle: handleLoadLora,
  }),
  endpointWithBody({
    method: "POST",
    path: "/v1/unload_lora_adapter",
    access: "admin",
    span: "none",
    answer: "text",
    summary: "Unloads it; running requests keep it until they end.",
    request: unloadLoraRequest,
    precondition: changeableAdapters,
    handle: handleUnloadLora,
  }),
  endpointWithBody({
    method: "POST",
    path: "/fault_injection",
    onlyWith: "enableFaultInjection",
    access: "admin",
    span: "none",
    answer: "json",
    summary: "Makes the engine evict, preempt, delay or slow down; only with `--enable-fault-injection`.",
    request: faultInjectionRequest,
    handle: handleAddFault,
  }),
  endpoint({
    method: "GET",
    path: "/fault_injection",
    onlyWith: "enableFaultInjection",
    access: "admin",
    span: "none",
    answer: "json",
    summary: "The active faults; only with `--enable-fault-injection`.",
    handle: handleFaults,
  }),
  endpoint({
    method: "DELETE",
    path: "/fault_injection",
    onlyWith: "enableFaultInjection",
    access: "admin",
    span: "none",
    answer: "json",
    summary: "Removes all of them; only with `--enable-fault-injection`.",
    handle: handleClearFaults,
  }),
  endpointWithId({
    method: "DELETE",
    path: "/fault_injection/*",
    onlyWith: "enableFaultInjection",
    access: "admin",
    ids: "shared",
    span: "none",
    answer: "json",
    summary: "Removes the one with that id; only with `--enable-fault-injection`.",
    handle: handleClearFault,
  }),
  endpointWithBody({
    method: "POST",
    path: "/tokenize",
    access: "tenant",
    span: "none",
    answer: "json",
    summary: "Text or messages to token ids.",
    request: tokenizeRequest,
    handle: handleTokenize,
  }),
  endpointWithBody({
    method: "POST",
    path: "/detokenize",
    access: "tenant",
    span: "none",
    answer: "json",
    summary: "Token ids to text, special tokens kept.",
    request: detokenizeRequest,
    handle: handleDetokenize,
  }),
  endpoint({
    method: "GET",
    path: "/health",
    aliases: ["/ping"],
    access: "public",
    span: "none",
    answer: "nothing",
    isProbe: true,
    summary: "200 while requests are accepted; 503 while draining and after an engine failure.",
    handle: handleHealth,
  }),
  endpoint({
    method: "POST",
    path: "/ping",
    access: "public",
    span: "none",
    answer: "nothing",
    isProbe: true,
    summary: "As `/health`, for SageMaker.",
    handle: handleHealth,
  }),
  endpoint({
    method: "GET",
    path: "/version",
    access: "public",
    span: "none",
    answer: "json",
    isProbe: true,
    summary: '`{"version": "..."}`',
    handle: handleVersion,
  }),
  endpoint({
    method: "GET",
    path: "/server_info",
    access: "admin",
    span: "none",
    answer: "json",
    isProbe: true,
    summary:
      "What this server is: artifact digest, kernel path, settings, clocks; equal replicas have all but the clocks in common.",
    handle: handleServerInfo,
  }),
  endpoint({
    method: "GET",
    path: "/load",
    access: "public",
    span: "none",
    answer: "json",
    isProbe: true,
    summary: '`{"server_load": n}`: requests being answered, this one excluded.',
    handle: handleLoad,
  }),
  endpoint({
    method: "GET",
    path: "/metrics",
    access: "public",
    span: "none",
    answer: "text",
    isProbe: true,
    summary: "Metrics in Prometheus' text format; with keys, tenants are named to the operator's only.",
    handle: handleMetrics,
  }),
  endpoint({
    method: "GET",
    path: "/openapi.json",
    access: "public",
    span: "none",
    answer: "json",
    summary: "This list as an OpenAPI 3.1 document, with every request's fields.",
    handle: (service, { response }) =>
      sendJson(response, 200, openApiDocument(endpointsWith(service.config), service.config.rootPath)),
  }),
];

/** The endpoints of a server with these settings; each alias becomes a row. */
export function endpointsWith(
  config: Pick<ServerConfig, "enableFaultInjection" | "replicaKey">,
): readonly Endpoint[] {
  return endpoints
    .filter(({ onlyWith }) => onlyWith === undefined || config[onlyWith])
    .flatMap((row) => [
      row,
      ...(row.aliases ?? []).map((path) => ({ ...row, path, summary: `As \`${row.path}\`.` })),
    ]);
}

export function serverRoutes(models: ServedModels): readonly Route[] {
  return endpointsWith(models.all[0].config).map((row) => ({
    ...row,
    handle: async (context, rest) => row.serve(await models.serviceFor(row, context, rest), context, rest),
  }));
}

/** The table of docs/reference/http.md. */
export function endpointTable(): string {
  const keys = { public: "no", tenant: "yes", admin: "operator's" };
  const rows = endpointsWith({ enableFaultInjection: true, replicaKey: "known" }).map(
    ({ method, path, access, summary }) => `| ${method} | \`${path}\` | ${keys[access]} | ${summary} |`,
  );
  return ["| Method | Path | Key | What it does |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

/** The table of docs/reference/http.md that lists fields which are refused, and fields without effect, by endpoint. */
export function fieldEffectTable(): string {
  const rows = endpoints.flatMap(({ path, request }) => {
    if (request === undefined) return [];
    const [refused, none] = (["refused", "none"] as const).map((effect) =>
      fieldsWithEffect(request, effect)
        .map((name) => `\`${name}\``)
        .join(", "),
    );
    return refused || none ? [`| \`${path}\` | ${refused} | ${none} |`] : [];
  });
  return ["| Path | Refused | Without effect |", "| --- | --- | --- |", ...rows].join("\n");
}
