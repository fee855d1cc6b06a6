import { z } from "zod";

/** What a step of a replica takes, as measured: `octavo simulate --measure` writes it. */
export const clusterCosts = z.strictObject({
  /** Fixed cost of any step: reading the weights. */
  base_ms: z.number().min(0),
  per_prompt_token_ms: z.number().min(0),
  /** Cost of each generating sequence in the step. */
  per_sequence_ms: z.number().min(0),
  /** Cost of a request that steps of its replica wait for. */
  per_request_ms: z.number().min(0).default(0),
  /** What a request takes outside its steps while those of others go on: HTTP, tokenizer, gateway. */
  request_overhead_ms: z.number().min(0).default(0),
  /** Replicas that share a machine. */
  replicas_per_host: z.int().min(1).default(1),
  /** By what share tokens take longer for each other replica of the machine that computes at the same time: they share its memory. */
  neighbour_slowdown: z.number().min(0).default(0),
  /** The same of prompt tokens, which read less memory for what they compute. */
  neighbour_prompt_slowdown: z.number().min(0).default(0),
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
