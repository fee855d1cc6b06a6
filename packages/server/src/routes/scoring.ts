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
import { type NamedText, scoreTextPairs } from "../generation/classify-inputs.js";
import { embedInputs } from "../generation/embed-inputs.js";
import type { PooledVector } from "../generation/run-pooling.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { nowSeconds, type ServedModel, type Service } from "../service.js";
import { invalidField } from "@octavo/protocol/refusal";

/** The score of the model's head, or of models without one the cosine of the two texts' embeddings. */
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
  const named = [...left, ...right].map((text, index) => ({ text, field: fieldOf(index) }));
  const pairs = right.map((_, index) => [left.length === 1 ? 0 : index, left.length + index] as const);
  const { scores, vectors } = await scoresOf(service, context, served, named, pairs, request);
  const answer: ScoreList = {
    id: `score-${request.request_id ?? randomUUID()}`,
    object: "list",
    created: nowSeconds(),
    model: served.name,
    data: scores.map((score, index) => ({ index, object: "score", score })),
    usage: usageOf(vectors),
  };
  sendJson(context.response, 200, answer);
}

/** Ranks documents by their scores with the query. */
export async function handleRerank(
  service: Service,
  context: RequestContext,
  request: RerankRequest,
): Promise<void> {
  const served = service.servedModel(request.model);
  const { query } = request;
  const documents = request.documents.map((item) => (typeof item === "string" ? item : item.text));
  const fieldOf = (index: number): string => (index === 0 ? "query" : `documents[${index - 1}]`);
  const named = [query, ...documents].map((text, index) => ({ text, field: fieldOf(index) }));
  const pairs = documents.map((_, index) => [0, index + 1] as const);
  const { scores, vectors } = await scoresOf(service, context, served, named, pairs, request);
  const ranked = documents
    .map((text, index) => ({ index, text, relevance_score: scores[index] ?? 0 }))
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

interface Scores {
  /** By pair. */
  readonly scores: readonly number[];
  readonly vectors: readonly PooledVector[];
}

/** Scores of pairs of the texts, by their indices. */
async function scoresOf(
  service: Service,
  context: RequestContext,
  served: ServedModel,
  texts: readonly NamedText[],
  pairs: readonly (readonly [number, number])[],
  request: ScoreRequest | RerankRequest,
): Promise<Scores> {
  const { classifier } = service.model.config;
  if (classifier !== undefined) {
    const named = pairs.flatMap(([left, right]) => {
      const [a, b] = [texts[left], texts[right]];
      return a === undefined || b === undefined ? [] : [[a, b] as const];
    });
    const vectors = await scoreTextPairs(service, context, served, classifier, named, request);
    return { scores: vectors.map(({ embedding }) => embedding[0] ?? Number.NaN), vectors };
  }
  const inputs = texts.map(({ text }) => asInput(text));
  const vectors = await embedInputs(
    service,
    context,
    served,
    inputs,
    { ...request, normalize: true },
    (index) => texts[index]?.field ?? "",
  );
  return { scores: pairs.map(([left, right]) => cosine(vectors[left], vectors[right])), vectors };
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
function cosine(a: PooledVector | undefined, b: PooledVector | undefined): number {
  if (a === undefined || b === undefined) throw new OctavoError("internal_error", "an embedding is missing");
  return a.embedding.reduce((sum, value, at) => sum + value * (b.embedding[at] ?? 0), 0);
}

function usageOf(vectors: readonly PooledVector[]): ScoringUsage {
  const tokens = vectors.reduce((total, { usage }) => total + usage.promptTokens, 0);
  return { prompt_tokens: tokens, total_tokens: tokens };
}
