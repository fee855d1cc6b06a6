import { randomUUID } from "node:crypto";
import { embeddingRequest, OctavoError, type EmbeddingList, type EmbeddingsRequest } from "@octavo/protocol";
import { truncatePrompt } from "../generation/context-length.js";
import { tokenizePrompts } from "../generation/tokenize-prompts.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { nowSeconds, type Service } from "../service.js";

/** POST /v1/embeddings */
export async function handleEmbeddings(service: Service, context: RequestContext): Promise<void> {
  const request = await service.readRequest(context, embeddingRequest);
  service.checkModel(request.model);
  checkDimensions(request, service.model.config.hiddenSize);
  const { engine } = service.model;
  const fieldOf = (index: number): string => (request.input.length === 1 ? "input" : `input[${index}]`);
  const addSpecialTokens = request.add_special_tokens ?? true;
  const given = await tokenizePrompts(service, context, request.input, addSpecialTokens, fieldOf);
  const prompts = given.map((tokens, index) => prepareInput(service, request, tokens, fieldOf(index)));
  const batch = {};
  const results = await Promise.all(
    prompts.map((tokens) =>
      engine.embed(
        {
          batch,
          kind: "embed",
          requestId: randomUUID(),
          promptTokens: tokens,
          pooling: service.config.pooling,
          normalize: request.normalize ?? true,
          arrivalMs: context.arrivalMs,
        },
        context.signal,
      ),
    ),
  );
  context.signal.throwIfAborted();
  const format = request.encoding_format ?? "float";
  const numTokens = results.reduce((total, result) => total + result.usage.promptTokens, 0);
  const answer: EmbeddingList = {
    id: `embd-${request.request_id ?? randomUUID()}`,
    object: "list",
    created: nowSeconds(),
    model: service.modelNames[0],
    data: results.map(({ embedding }, index) => ({
      object: "embedding",
      index,
      embedding: format === "base64" ? toBase64(embedding) : Array.from(embedding),
    })),
    usage: {
      prompt_tokens: numTokens,
      total_tokens: numTokens,
      completion_tokens: 0,
      prompt_tokens_details: {
        cached_tokens: results.reduce((total, result) => total + result.usage.cachedTokens, 0),
      },
    },
  };
  sendJson(context.response, 200, answer);
}

function prepareInput(
  service: Service,
  request: EmbeddingsRequest,
  given: Int32Array,
  field: string,
): Int32Array {
  const { model } = service;
  const limit =
    request.truncate_prompt_tokens === -1 ? model.engine.maxModelLen : request.truncate_prompt_tokens;
  const tokens = truncatePrompt(given, limit, request.truncation_side, model.engine.maxModelLen);
  if (tokens.length === 0)
    throw new OctavoError("invalid_request", `${field}: the input has no tokens`, { param: field });
  if (tokens.length > model.engine.maxModelLen) {
    const message = `${field}: the input has ${tokens.length} tokens and this model's context length is ${model.engine.maxModelLen} tokens; shorten it, or set truncate_prompt_tokens`;
    throw new OctavoError("context_length_exceeded", message, { param: field });
  }
  return tokens;
}

function checkDimensions(request: EmbeddingsRequest, hiddenSize: number): void {
  if (request.dimensions === undefined || request.dimensions === null || request.dimensions === hiddenSize)
    return;
  const message = `dimensions: this model's embeddings have ${hiddenSize} dimensions and were not trained to be cut; got ${request.dimensions}`;
  throw new OctavoError("unsupported_parameter", message, { param: "dimensions" });
}

/** Little-endian float32, as OpenAI's clients decode it. */
function toBase64(embedding: Float32Array): string {
  const bytes = Buffer.alloc(embedding.length * 4);
  for (const [index, value] of embedding.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
