import { z } from "zod";
import { camelKeys } from "../settings.js";

const positive = z.number().gt(0);
const count = z.number().int().min(1);

export const jitterSettings = z
  .strictObject({
    /** Conditions of the baseline and of the judged traffic. Without the first, the time before each window is the baseline. */
    baseline: z.string().default("baseline"),
    current: z.string().default("burst"),
    /** A gap is long from this multiple of the usual 99th percentile on; the published rule alerts at it as well. */
    factor: positive.default(2),
    /** Share of gaps that may be long. */
    long_share: z.number().gt(0).lt(0.5).default(0.01),
    /** The published rule: windows of five minutes against the 24 hours before, prefills in the batch above 4000 tokens. */
    window_ms: positive.default(300_000),
    baseline_ms: positive.default(86_400_000),
    prefill_tokens: positive.default(4000),
    /** Gaps of one such slice are one observation: gaps of one step are one event. */
    slice_ms: positive.default(1000),
    /** Slices with fewer gaps count as if they had so many. */
    full_slice: count.default(16),
    resamples: z.number().int().min(200).max(100_000).default(1000),
    alpha: z.number().gt(0).max(0.5).default(0.05),
    power: z.number().min(0.5).lt(1).default(0.8),
    seed: z.number().int().default(1),
    /** Streams that are watched, in each of the turns that quiet and burst take. */
    streams: count.default(4),
    rounds: count.max(100).default(6),
    tokens: count.default(96),
    /** What bursts are made of: prompts of about so many tokens, so many of them in each round. */
    burst_prompts: z.number().int().min(0).default(6),
    burst_prompt_tokens: count.default(1500),
    /** Whether the slowest stream is sent again without its neighbours. */
    replay: z.boolean().default(true),
    replays: count.max(100).default(5),
    /** Sends `min_tokens` and `cache_salt`, which Octavo and vLLM know: streams are as long as asked for, and prompts are computed. */
    vllm_fields: z.boolean().default(true),
  })
  .transform(camelKeys);

/** Settings of the check `jitter`, with their defaults filled in. */
export type JitterSettings = z.output<typeof jitterSettings>;
