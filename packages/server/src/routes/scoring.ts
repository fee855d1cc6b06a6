import { randomUUID } from "node:crypto";
import {
  OctavoError,
  type PromptInput,
  type RerankList,
  type RerankRequest,
  scoredPair,
  type ScoredField,
  type ScoreList,
  type ScoreRequest,
  type ScoringUsage,
} from "@octavo/protocol";
import { type EmbeddedInput, embedInputs } from "../generation/embed-inputs.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { nowSeconds, type Service } from "../service.js";
import { invalidField } from "@octavo/protocol/refusal";

/** The cosine of the two texts' embeddings, since these models have no head that scores pairs. */
export async function handleScore(
  service: Service,
  context: RequestContext,
  request: ScoreRequest,
): Promise<void> {
  const served = service.servedModel(request.model);
  const pair = scoredPair(request);
  if (pair === undefined) throw new OctavoError("internal_error", "the pair was not checked");
  const [left, right] = [listOf(pair[0].texts), listOf(pair[1].texts)];
  if (left.length !== 1 && left.length !== right.length) {
    const problem = `has ${left.length} texts and ${pair[1].name} ${right.length}; give one, or as many as in ${pair[1].name}`;
    throw invalidField(pair[0].name, problem);
  }
  const fieldOf = (index: number): string =>
    index < left.length ? nameOf(pair[0], index) : nameOf(pair[1], index - left.length);
  const vectors = await embedInputs(
    service,
    context,
    served,
    [...left, ...right].map(asInput),
    request,
    fieldOf,
  );
  const answer: ScoreList = {
    id: `score-${request.request_id ?? randomUUID()}`,
    object: "list",
    created: nowSeconds(),
    model: served.name,
    data: right.map((_, index) => ({
      index,
      object: "score",
      score: cosine(vectors[left.length === 1 ? 0 : index], vectors[left.length + index]),
    })),
    usage: usageOf(vectors),
  };
  sendJson(context.response, 200, answer);
}

/** Ranks documents by the cosine of their embedding with the query's. */
export async function handleRerank(
  service: Service,
  context: RequestContext,
  request: RerankRequest,
): Promise<void> {
  const served = service.servedModel(request.model);
  const { query } = request;
  const documents = request.documents.map((item) => (typeof item === "string" ? item : item.text));
  const fieldOf = (index: number): string => (index === 0 ? "query" : `documents[${index - 1}]`);
  const vectors = await embedInputs(
    service,
    context,
    served,
    [query, ...documents].map(asInput),
    request,
    fieldOf,
  );
  const ranked = documents
    .map((text, index) => ({ index, text, relevance_score: cosine(vectors[0], vectors[index + 1]) }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score);
  const count = request.top_n ? request.top_n : ranked.length;
  const answer: RerankList = {
    id: `rerank-${request.request_id ?? randomUUID()}`,
    model: served.name,
    results: ranked.slice(0, count).map(({ index, text, relevance_score }) => ({
      index,
      ...(request.return_documents === false ? {} : { document: { text } }),
      relevance_score,
    })),
    usage: usageOf(vectors),
  };
  sendJson(context.response, 200, answer);
}

function listOf(texts: string | readonly string[]): readonly string[] {
  return typeof texts === "string" ? [texts] : texts;
}

function nameOf({ name, texts }: ScoredField, index: number): string {
  return typeof texts === "string" ? name : `${name}[${index}]`;
}

function asInput(text: string): PromptInput {
  return { kind: "text", text };
}

/** The inner product, as the vectors have length 1. */
function cosine(a: EmbeddedInput | undefined, b: EmbeddedInput | undefined): number {
  if (a === undefined || b === undefined) throw new OctavoError("internal_error", "an embedding is missing");
  return a.embedding.reduce((sum, value, at) => sum + value * (b.embedding[at] ?? 0), 0);
}

function usageOf(vectors: readonly EmbeddedInput[]): ScoringUsage {
  const tokens = vectors.reduce((total, { usage }) => total + usage.promptTokens, 0);
  return { prompt_tokens: tokens, total_tokens: tokens };
}
