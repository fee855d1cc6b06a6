import { z } from "zod";
import { evictionFields } from "../eviction/settings.js";
import { camelKeys, concurrency, share } from "../settings.js";

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

export type EvictionBurstSettings = z.output<typeof evictionBurstSettings>;
