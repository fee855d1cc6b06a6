import { z } from "zod";
import { camelKeys, share } from "../settings.js";

const positive = z.number().gt(0);

export const trafficDriftSettings = z
  .strictObject({
    /** Conditions of the recording and of the evaluation's traffic. */
    production: z.string().default("production"),
    evaluation: z.string().default("evaluation"),
    /** Mean arrival rates may differ by this factor, either way. */
    rate_margin: z.number().gt(1).default(1.5),
    /** Indices of dispersion of arrivals may. */
    dispersion_margin: z.number().gt(1).default(2),
    /** Length of the windows in which arrivals are counted for it. */
    dispersion_window_ms: positive.default(1000),
    /** Wasserstein distance between lengths, in production's standard deviations (Evidently's default is 0.1 as well). */
    length_margin: positive.default(0.1),
    /** Jensen-Shannon distance between tenants' shares. */
    tenant_margin: share.default(0.1),
    /** Share of production's requests that came under a pattern which the evaluation never ran. */
    unseen_pattern_margin: share.default(0.05),
    /** Loss of a score from the evaluation to production, or to production's mix of patterns. */
    score_margin: share.default(0.05),
    /** The published labels: 60-s windows of queue depth, burst above 2.5 times the mean, sustained above 0.7 of 16 a replica. */
    window_ms: positive.default(60_000),
    burst_factor: positive.default(2.5),
    sustained_share: positive.default(0.7),
    requests_per_replica: positive.default(16),
    /** Equal stretches of time that the bootstrap draws. */
    num_blocks: z.number().int().min(8).max(1000).default(40),
    resamples: z.number().int().min(200).max(100_000).default(1000),
    alpha: z.number().gt(0).max(0.5).default(0.05),
    power: z.number().min(0.5).lt(1).default(0.8),
    seed: z.number().int().default(1),
    /** Spans of production, to be replayed: a file of JSON lines, OTLP JSON or Parquet. */
    recording: z.string().optional(),
    /** The recording is replayed so many times as fast. */
    speedup: positive.default(1),
    /** Requests of the recording that are replayed, from its beginning. */
    most_requests: z.number().int().min(1).default(2000),
  })
  .transform(camelKeys);

/** Settings of the check `traffic-drift`, with their defaults filled in. */
export type TrafficDriftSettings = z.output<typeof trafficDriftSettings>;
