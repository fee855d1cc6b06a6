import { z } from "zod";
import { camelKeys, comparisonFields, concurrency, share } from "../settings.js";

/** Settings of both checks of eviction. */
const evictionFields = {
  ...comparisonFields,
  concurrency: concurrency.default(2),
  /** Loss of a score that is accepted. */
  margin: share.default(0.02),
  /** Share of answers that may differ, to be excluded before "they are the same" passes. */
  difference_margin: share.default(0.05),
  /** The published buckets of the cache hit ratio. */
  high_hit_ratio: share.default(0.85),
  medium_hit_ratio: share.default(0.55),
  /** The published rule looks for a cliff and names no height. */
  cliff: share.default(0.05),
};

export const evictionSettings = z
  .strictObject({
    ...evictionFields,
    /** Conditions: the cache left alone, the same once more, and blocks taken away while the answer was written. */
    kept: z.string().default("kept"),
    kept_again: z.string().default("kept-again"),
    evicted: z.string().default("evicted"),
    /** How blocks are taken away: by fault injection, or by a salt that hides the prefix cache. */
    method: z.enum(["auto", "faults", "cache_salt"]).default("auto"),
    /** With fault injection: evict the request's blocks, preempt it, or one after the other. */
    fault: z.enum(["evict", "preempt", "both"]).default("both"),
  })
  .transform(camelKeys);

/** Settings of the check `eviction`, with their defaults filled in. */
export type EvictionSettings = z.output<typeof evictionSettings>;

export const evictionBurstSettings = z
  .strictObject({
    ...evictionFields,
    /** Conditions: cases on a quiet server, the same once more, the same within the burst, and the burst's own requests. */
    quiet: z.string().default("quiet"),
    quiet_again: z.string().default("quiet-again"),
    burst: z.string().default("burst"),
    filler: z.string().default("filler"),
    /** Requests of the burst that may be preempted: their blocks are taken away and computed again. */
    max_preempted_share: share.default(0.1),
    /** Requests of the burst that may fail. */
    max_failed_share: share.default(0.05),
    /** The burst: so many long prompts at once, each with so many tokens, and so many at most in all. */
    burst_in_flight: concurrency.default(32),
    burst_prompt_tokens: z.int().min(1).max(1_000_000).default(2_000),
    burst_output_tokens: z.int().min(1).max(100_000).default(64),
    most_fillers: z.int().min(1).max(100_000).default(2_000),
    /** From the burst's first request to the first case in it. */
    burst_lead_ms: z.int().min(0).max(600_000).default(500),
    /** Between looks at the server's metrics. */
    metrics_interval_ms: z.int().min(10).max(60_000).default(100),
  })
  .transform(camelKeys);

/** Settings of the check `eviction-burst`, with their defaults filled in. */
export type EvictionBurstSettings = z.output<typeof evictionBurstSettings>;

/** What both checks of eviction are told. */
export type EvictionFields = Pick<EvictionSettings, keyof EvictionSettings & keyof EvictionBurstSettings>;
