import { z } from "zod";

const timeoutMs = z
  .number()
  .gt(0)
  .max(2 ** 31 - 1);

const atToken = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
const atTokens = z.union([atToken, z.array(atToken).max(64)]);

/** Faults tied to the request; only where `--enable-fault-injection` allows them. */
const faultFields = z.strictObject({
  /** It gives its blocks back before the first step with so many output tokens. */
  preempt_at_token: atTokens.nullish(),
  /** It is recomputed; 0: its prompt is not found in the cache. */
  evict_at_token: atTokens.nullish(),
});

/** What Octavo does beyond OpenAI's and vLLM's fields, when asked. */
export const octavoFields = z.strictObject({
  include_serving_record: z.boolean().nullish(),
  /** A digest of the raw logits behind each token, for comparing runs bit by bit. */
  include_logits_digest: z.boolean().nullish(),
  /** Bounds on the request's time, from its arrival: to leave the queue, to the first token, to the end. */
  queue_timeout_ms: timeoutMs.nullish(),
  ttft_timeout_ms: timeoutMs.nullish(),
  timeout_ms: timeoutMs.nullish(),
  faults: faultFields.nullish(),
  /**
   * The output that another server gave for the same request, all but its last token: it is sent again and continued. With the
   * same `seed` the answer is the one that the other server would have given.
   */
  emitted_token_ids: z.array(atToken).min(1).max(1_000_000).nullish(),
});

export type OctavoFields = z.output<typeof octavoFields>;

/** The least, the mean and the most of some numbers; all 0 of none. */
export interface Spread {
  readonly min: number;
  readonly mean: number;
  readonly max: number;
}

/** Where a span of time went: the parts add up to `ms`. Causes: `docs/guide/slow-tokens.md`. */
export interface ExplanationInfo {
  readonly ms: number;
  readonly cause: string;
  readonly parts: readonly {
    readonly cause: string;
    readonly ms: number;
    readonly tokens?: number;
    readonly requests?: readonly {
      readonly request_id: string;
      readonly tenant: string;
      readonly ms: number;
      readonly tokens: number;
    }[];
    readonly tenants?: readonly { readonly tenant: string; readonly ms: number; readonly tokens: number }[];
  }[];
}

/** How a request was served. Times in ms. */
export interface ServingRecordInfo {
  readonly request_id: string;
  readonly tenant: string;
  readonly is_over: boolean;
  readonly queue_ms: number;
  readonly queue_depth_at_arrival: number;
  readonly time_to_first_token_ms?: number;
  readonly prefill_ms: number;
  readonly decode_ms: number;
  readonly e2e_ms: number;
  readonly kernel_ms: number;
  readonly reader_lag_ms: number;
  readonly gaps: {
    readonly count: number;
    readonly mean_ms: number;
    readonly p50_ms: number;
    readonly p99_ms: number;
    readonly max_ms: number;
  };
  readonly num_steps: number;
  readonly batch_size: Spread;
  readonly shared_prefill_tokens: Spread;
  readonly cached_tokens: number;
  readonly cache_hit_ratio: number;
  readonly evicted_prefix_tokens: number;
  readonly blocks_hit: number;
  readonly blocks_allocated: number;
  readonly blocks_evicted: number;
  readonly preemptions: number;
  readonly recomputed_tokens: number;
  readonly draft_tokens: number;
  readonly accepted_draft_tokens: number;
  readonly first_token?: ExplanationInfo;
  readonly slow_gaps: readonly (ExplanationInfo & {
    readonly sequence: number;
    readonly output: number;
    readonly step: number;
    readonly usual_ms: number;
  })[];
}

/** A request as it would have to be sent again. Times in ms, from its arrival but for `arrival_offset_ms`. */
export interface RecordedRequestInfo {
  readonly request_id: string;
  readonly tenant: string;
  readonly is_over: boolean;
  /** From the arrival of the request that was asked about. */
  readonly arrival_offset_ms: number;
  readonly queue_ms?: number;
  readonly time_to_first_token_ms?: number;
  readonly e2e_ms?: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  /** Output tokens of each of its sequences. */
  readonly output_tokens: readonly number[];
  /** What was computed of it while the request that was asked about was there. */
  readonly tokens_meanwhile: number;
  readonly kernel_ms_meanwhile: number;
}

/** A request and those that were there beside it. */
export interface NeighboursInfo {
  readonly request: RecordedRequestInfo;
  /** By arrival. */
  readonly neighbours: readonly RecordedRequestInfo[];
  readonly num_omitted: number;
}

/** What an answer holds under `octavo`. */
export interface OctavoNotes {
  readonly serving_record?: ServingRecordInfo;
  /** One for each prompt. */
  readonly serving_records?: readonly ServingRecordInfo[];
  /** By choice, one of 16 hexadecimal digits for each output token. */
  readonly logits_digests?: readonly (readonly string[])[];
}
