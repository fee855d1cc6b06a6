import { z } from "zod";
import { deliveryFields, listOf, requestLimits } from "./fields.js";

const text = z.string().min(1);
const texts = z.union([text, listOf(text, { min: 1, max: requestLimits.prompts })]);

const sharedFields = {
  model: deliveryFields.model,
  user: deliveryFields.user,
  truncate_prompt_tokens: deliveryFields.truncate_prompt_tokens,
  truncation_side: deliveryFields.truncation_side,
  request_id: deliveryFields.request_id,
} as const;

/** vLLM's score request: pairs of texts, or one text against many. */
export const scoreRequest = z.object({ ...sharedFields, text_1: texts, text_2: texts });

export type ScoreRequest = z.output<typeof scoreRequest>;

const document = z.union([text, z.object({ text }).transform((item) => item.text)]);

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
