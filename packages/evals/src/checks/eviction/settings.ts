import { z } from "zod";
import { camelKeys, comparisonFields, concurrency, share } from "../settings.js";

/** What both checks of eviction are told. */
export const evictionFields = {
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

export type EvictionSettings = z.output<typeof evictionSettings>;
