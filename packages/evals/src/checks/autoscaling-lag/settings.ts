import { z } from "zod";
import { camelKeys, share } from "../settings.js";

const positive = z.number().gt(0);
const count = z.number().int().min(1);

export const autoscalingLagSettings = z
  .strictObject({
    /** Conditions of the same cases: nothing else to do, a burst before replicas were added, and after. */
    idle: z.string().default("idle"),
    scaling: z.string().default("scaling"),
    scaled: z.string().default("scaled"),
    /** Percentile of the time to the first token while scaling, over idle. */
    first_token_margin: positive.default(3),
    /** Largest increase of the failure rate over idle. */
    failure_margin: share.default(0.02),
    truncation_margin: share.default(0.02),
    fallback_margin: share.default(0.02),
    /** Largest loss of a score against idle. */
    score_margin: share.default(0.05),
    /** With more cases scored on one side only than this share, no score passes: the missing ones may be those that went wrong. */
    max_missing_share: share.default(0.05),
    /** The published buckets of queue depth over replicas: below these idle, warm, saturating; else scaling. */
    warm_from: positive.default(2),
    saturating_from: positive.default(8),
    scaling_from: positive.default(16),
    /** Default: 0.99 with at least 368 pairs, else 0.9. */
    level: z.number().min(0.5).lt(1).optional(),
    num_blocks: z.number().int().min(8).max(1000).default(20),
    resamples: z.number().int().min(200).max(100_000).default(1000),
    alpha: z.number().gt(0).max(0.5).default(0.05),
    power: z.number().min(0.5).lt(1).default(0.8),
    seed: z.number().int().default(1),
    /** Cases that are sent in each state; fewer where the dataset has fewer. */
    requests: count.default(200),
    /** While idle, and in the burst. */
    idle_requests_per_second: positive.default(1),
    burst_requests_per_second: positive.default(10),
    /** The scaler notices the burst so late (Ray Serve: upscale_delay_s is 30). */
    upscale_delay_ms: z.number().min(0).default(0),
    /** Sends `cache_salt`, which Octavo and vLLM know: no state finds prompts that another left in the prefix cache. */
    cache_salt: z.boolean().default(true),
    /** A replica that does not answer for so long after it was started is given up. */
    replica_timeout_ms: positive.default(300_000),
  })
  .transform(camelKeys);

/** Settings of the check `autoscaling-lag`, with their defaults filled in. */
export type AutoscalingLagSettings = z.output<typeof autoscalingLagSettings>;
