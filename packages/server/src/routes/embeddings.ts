import { randomUUID } from "node:crypto";
import { type EmbeddingList, type EmbeddingsRequest } from "@octavo/protocol";
import { embedInputs } from "../generation/embed-inputs.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { nowSeconds, type Service } from "../service.js";
import { unsupportedField } from "../generation/refusal.js";

export async function handleEmbeddings(
  service: Service,
  context: RequestContext,
  request: EmbeddingsRequest,
): Promise<void> {
  const served = service.servedModel(request.model);
  checkDimensions(request, service.model.config.hiddenSize);
  const fieldOf = (index: number): string => (request.input.length === 1 ? "input" : `input[${index}]`);
  const results = await embedInputs(service, context, served, request.input, request, fieldOf);
  const format = request.encoding_format ?? "float";
  const numTokens = results.reduce((total, result) => total + result.usage.promptTokens, 0);
  const answer: EmbeddingList = {
    id: `embd-${request.request_id ?? randomUUID()}`,
    object: "list",
    created: nowSeconds(),
    model: served.name,
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

function checkDimensions(request: EmbeddingsRequest, hiddenSize: number): void {
  if (request.dimensions === undefined || request.dimensions === null || request.dimensions === hiddenSize)
    return;
  throw unsupportedField(
    "dimensions",
    `this model's embeddings have ${hiddenSize} dimensions and were not trained to be cut; got ${request.dimensions}`,
  );
}

/** Little-endian float32, as OpenAI's clients decode it. */
function toBase64(embedding: Float32Array): string {
  const bytes = Buffer.alloc(embedding.length * 4);
  for (const [index, value] of embedding.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
