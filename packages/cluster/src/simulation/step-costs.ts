import { z } from "zod";

/** What a step of a replica takes, as measured: `octavo simulate --measure` writes it. */
export const clusterCosts = z.strictObject({
  /** Fixed cost of any step: reading the weights. */
  base_ms: z.number().min(0),
  per_prompt_token_ms: z.number().min(0),
  /** Cost of each generating sequence in the step. */
  per_sequence_ms: z.number().min(0),
  /** Cost of a request outside its steps: HTTP, tokenizer, gateway. */
  per_request_ms: z.number().min(0).default(0),
  max_num_seqs: z.int().min(1).default(256),
  max_num_batched_tokens: z.int().min(1).default(2048),
  num_blocks: z.int().min(1).default(16_384),
  /** From the decision to the first request. */
  cold_start_s: z.number().min(0).default(1),
});

export type ClusterCosts = z.output<typeof clusterCosts>;

export interface SimulatedCall {
  readonly atS: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}
