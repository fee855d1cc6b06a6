import { z } from "zod";
import { listOf, poolingFields, requestLimits } from "./fields.js";

const text = z.string().min(1);
const texts = z.union([text, listOf(text, { min: 1, max: requestLimits.prompts })]);
type ScoredTexts = z.output<typeof texts>;

const sharedFields = {
  ...poolingFields,
  /** Models with a scoring head only: false leaves the score as the head gives it. */
  use_activation: z.boolean().nullish(),
} as const;

/** The names under which clients send what is compared. */
const pairs = [
  ["text_1", "text_2"],
  ["data_1", "data_2"],
  ["queries", "documents"],
  ["queries", "items"],
] as const;
type PairName = (typeof pairs)[number][number];

/** Two fields that are compared, with their names. */
type ScoredPair = readonly [ScoredField, ScoredField];
export interface ScoredField {
  readonly name: PairName;
  readonly texts: ScoredTexts;
}

/** What a score request compares; undefined unless it is exactly one pair. */
export function scoredPair(
  request: Readonly<Partial<Record<PairName, ScoredTexts | null | undefined>>>,
): ScoredPair | undefined {
  const names = new Set(pairs.flat().filter((name) => (request[name] ?? undefined) !== undefined));
  const found = pairs.find((pair) => pair.every((name) => names.has(name)));
  if (found === undefined || names.size !== 2) return undefined;
  const [left, right] = found.map((name) => ({ name, texts: request[name] ?? [] }));
  return left && right && [left, right];
}

/** vLLM's score request: pairs of texts, or one text against many. */
export const scoreRequest = z
  .object({
    ...sharedFields,
    text_1: texts.nullish(),
    text_2: texts.nullish(),
    data_1: texts.nullish(),
    data_2: texts.nullish(),
    queries: texts.nullish(),
    documents: texts.nullish(),
    items: texts.nullish(),
  })
  .superRefine((request, context) => {
    if (scoredPair(request) !== undefined) return;
    const message = `give one pair of fields: ${pairs.map((pair) => pair.join(" and ")).join(", or ")}`;
    context.addIssue({ code: "custom", message });
  });

export type ScoreRequest = z.output<typeof scoreRequest>;

const document = z.union([text, z.object({ text })]);

/** Jina's and Cohere's rerank request, as vLLM takes it. */
export const rerankRequest = z.object({
  ...sharedFields,
  query: text,
  documents: listOf(document, { min: 1, max: requestLimits.prompts }),
  /** 0, the default, returns all. */
  top_n: z.int().min(0).nullish(),
  return_documents: z.boolean().nullish(),
});

export type RerankRequest = z.output<typeof rerankRequest>;

export interface ScoreList {
  readonly id: string;
  readonly object: "list";
  readonly created: number;
  readonly model: string;
  readonly data: readonly { readonly index: number; readonly object: "score"; readonly score: number }[];
  readonly usage: ScoringUsage;
}

export interface RerankList {
  readonly id: string;
  readonly model: string;
  readonly results: readonly {
    readonly index: number;
    readonly document?: { readonly text: string };
    readonly relevance_score: number;
  }[];
  readonly usage: ScoringUsage;
}

export interface ScoringUsage {
  readonly prompt_tokens: number;
  readonly total_tokens: number;
}
