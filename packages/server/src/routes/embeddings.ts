import { randomUUID } from "node:crypto";
import type { ModelConfig } from "@octavo/engine";
import type {
  ClassifyRequest,
  EmbeddingList,
  EmbeddingsRequest,
  PoolingList,
  PoolingRequest,
  PromptInput,
} from "@octavo/protocol";
import { chatPrompt } from "../generation/chat-prompt.js";
import { embedInputs } from "../generation/embed-inputs.js";
import { encodeVector } from "../generation/encode-vector.js";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";
import type { RequestContext } from "../http/request-context.js";
import { sendBytes, sendJson } from "../http/respond.js";
import { nowSeconds, type Service } from "../service.js";

export async function handleEmbeddings(
  service: Service,
  context: RequestContext,
  request: EmbeddingsRequest,
): Promise<void> {
  await sendVectors(service, context, request, "embd", ({ vectors, ...head }): EmbeddingList => ({
    ...head,
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
  }));
}

export async function handlePooling(
  service: Service,
  context: RequestContext,
  request: PoolingRequest,
): Promise<void> {
  await sendVectors(service, context, request, "pool", ({ vectors, ...head }): PoolingList => ({
    ...head,
    data: vectors.map((data, index) => ({ object: "pooling", index, data })),
  }));
}

type Vectors = Omit<EmbeddingList, "data"> & { readonly vectors: readonly (readonly number[] | string)[] };

async function sendVectors(
  service: Service,
  context: RequestContext,
  request: EmbeddingsRequest,
  idPrefix: string,
  answerOf: (answer: Vectors) => object,
): Promise<void> {
  const served = service.servedModel(request.model);
  const { config } = service.model;
  const numColumns = dimensionsOf(request, config);
  const normalize = normalizes(request) ?? config.embedding?.normalize ?? true;
  const { inputs, fieldOf } = await promptsOf(service, context, request);
  const whole = await embedInputs(service, context, served, inputs, { ...request, normalize }, fieldOf);
  const results = whole.map((result) => ({
    ...result,
    embedding: cut(result.embedding, numColumns, normalize),
  }));
  const numTokens = results.reduce((total, result) => total + result.usage.promptTokens, 0);
  const head = {
    id: `${idPrefix}-${request.request_id ?? randomUUID()}`,
    object: "list" as const,
    created: nowSeconds(),
    model: served.name,
    usage: {
      prompt_tokens: numTokens,
      total_tokens: numTokens,
      completion_tokens: 0 as const,
      prompt_tokens_details: {
        cached_tokens: results.reduce((total, result) => total + result.usage.cachedTokens, 0),
      },
    },
  };
  const dtype = request.embed_dtype ?? "float32";
  const endianness = request.endianness ?? "native";
  const bytesOf = ({ embedding }: { embedding: Float32Array }): Buffer =>
    encodeVector(embedding, dtype, endianness);
  const format = request.encoding_format ?? "float";
  if (format === "float") {
    sendJson(
      context.response,
      200,
      answerOf({ ...head, vectors: results.map(({ embedding }) => [...embedding]) }),
    );
  } else if (format === "base64") {
    const vectors = results.map((result) => bytesOf(result).toString("base64"));
    sendJson(context.response, 200, answerOf({ ...head, vectors }));
  } else {
    const parts = results.map(bytesOf);
    // vLLM's header, which says where each vector lies in the body
    const data = parts.map((part, index) => ({
      index,
      embed_dtype: dtype,
      endianness,
      start: index * part.length,
      end: (index + 1) * part.length,
      shape: [numColumns],
    }));
    if (format === "bytes") context.response.setHeader("metadata", asciiJson({ ...head, data }));
    sendBytes(context.response, 200, "application/octet-stream", Buffer.concat(parts));
  }
}

interface Prompts {
  readonly inputs: readonly PromptInput[];
  readonly fieldOf: (index: number) => string;
}

/** The inputs as they are, or the conversation as the model's template lays it out. */
export async function promptsOf(
  service: Service,
  context: RequestContext,
  request: EmbeddingsRequest | ClassifyRequest,
): Promise<Prompts> {
  const { input, messages } = request;
  if (!messages) {
    const inputs = input ?? [];
    return { inputs, fieldOf: (index) => (inputs.length === 1 ? "input" : `input[${index}]`) };
  }
  const fields = { ...request, messages, add_generation_prompt: request.add_generation_prompt ?? false };
  const { tokens } = await chatPrompt(service.model, fields, service.config, context);
  return { inputs: [{ kind: "tokens", tokens }], fieldOf: () => "messages" };
}

function normalizes({ normalize, use_activation: activates }: EmbeddingsRequest): boolean | undefined {
  const given = [normalize, activates].filter((value) => typeof value === "boolean");
  if (given[0] !== given.at(-1))
    throw invalidField("use_activation", "differs from normalize; send one of them");
  return given[0] ?? undefined;
}

/** How many columns of each embedding are asked for; the model says which numbers make sense. */
function dimensionsOf({ dimensions }: EmbeddingsRequest, config: ModelConfig): number {
  const { embedding } = config;
  const hiddenSize = embedding?.dense?.at(-1)?.rows ?? config.hiddenSize;
  if (dimensions === undefined || dimensions === null || dimensions === hiddenSize) return hiddenSize;
  const { dimensions: allowed } = embedding ?? {};
  if (allowed === undefined) {
    throw unsupportedField(
      "dimensions",
      `this model's embeddings have ${hiddenSize} dimensions and were not trained to be cut; got ${dimensions}`,
    );
  }
  if (dimensions < hiddenSize && (allowed === "any" || allowed.includes(dimensions))) return dimensions;
  const choice = allowed === "any" ? `up to ${hiddenSize}` : [...allowed, hiddenSize].join(", ");
  throw unsupportedField(
    "dimensions",
    `this model's embeddings can have ${choice} dimensions; got ${dimensions}`,
  );
}

/** The first columns, at length 1 again where the whole was. */
function cut(embedding: Float32Array, numColumns: number, isNormalized: boolean): Float32Array {
  if (numColumns === embedding.length) return embedding;
  const kept = embedding.slice(0, numColumns);
  const length = isNormalized ? Math.hypot(...kept) : 1;
  return length > 0 ? kept.map((value) => value / length) : kept;
}

/** JSON as a header may carry it. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
