import { z } from "zod";
import { deliveryFields } from "./fields.js";
import { promptInputs } from "./prompt-input.js";

export const embeddingRequest = z.object({
  input: promptInputs,
  model: deliveryFields.model,
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).nullish(),
  user: deliveryFields.user,
  add_special_tokens: z.boolean().nullish(),
  truncate_prompt_tokens: deliveryFields.truncate_prompt_tokens,
  truncation_side: deliveryFields.truncation_side,
  request_id: deliveryFields.request_id,
  /** Unit length, as OpenAI's; default true. */
  normalize: z.boolean().nullish(),
});

export type EmbeddingsRequest = z.output<typeof embeddingRequest>;

export interface EmbeddingItem {
  readonly object: "embedding";
  readonly index: number;
  /** Numbers, or little-endian float32 in base64. */
  readonly embedding: readonly number[] | string;
}

export interface EmbeddingList {
  readonly id: string;
  readonly object: "list";
  readonly created: number;
  readonly model: string;
  readonly data: readonly EmbeddingItem[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly total_tokens: number;
    readonly completion_tokens: 0;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}
