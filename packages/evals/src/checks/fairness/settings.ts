import { z } from "zod";
import { camelKeys, share } from "../settings.js";

const positive = z.number().gt(0);
const count = z.number().int().min(1);

/** How long a small tenant may wait beside a large one, relative to its wait alone. */
const latencyMarginFields = {
  /** Percentile of the time to the first token, over that of the tenant's own solo run. */
  first_token_margin: positive.default(5),
  /** Margin for the latency of whole answers. */
  e2e_margin: positive.default(2.25),
  /** Largest increase of the failure rate over the solo run. */
  failure_margin: share.default(0.01),
  /** Default: 0.99 with at least 368 requests, else 0.9. */
  level: z.number().min(0.5).lt(1).optional(),
  /** Stretches of neighbouring requests that the bootstrap draws. */
  num_blocks: z.number().int().min(8).max(1000).default(20),
  resamples: z.number().int().min(200).max(100_000).default(1000),
  /**
   * Between tenants for the same requests: ms more on average to the first token and for whole answers (of those at least a tenth
   * of their mean), and loss of a score.
   */
  tenant_margin_ms: positive.default(200),
  tenant_score_margin: share.default(0.05),
  /** With more cases scored on one side only than this share, no score passes: the missing ones may be those that went wrong. */
  max_missing_share: share.default(0.05),
  /** Conditions of a tenant alone, and beside others. */
  solo: z.string().default("solo"),
  shared: z.string().default("shared"),
  /** Condition of the other tenant that sends the same requests alone. */
  peer: z.string().default("peer"),
  alpha: z.number().gt(0).max(0.5).default(0.05),
  power: z.number().min(0.5).lt(1).default(0.8),
  seed: z.number().int().default(1),
};

/** How the traffic of two tenants is made. */
const twoTenantFields = {
  small_requests_per_minute: positive.default(5),
  large_requests_per_minute: positive.default(500),
  /** Requests of the small tenant under each condition: 368 bound a 99th percentile, which takes 74 minutes each at 5 a minute. */
  requests: count.default(40),
  /** Solo and shared take turns so many times, so that what else changes in the meantime changes for both. */
  rounds: count.max(100).default(2),
  /** Shape of the large tenant's gaps: 1 is Poisson, below it burstier. */
  large_burstiness: positive.default(0.25),
  /** Tokens of the large tenant's prompts and answers, about; 0 sends it the cases. */
  large_prompt_tokens: z.number().int().min(0).default(0),
  large_output_tokens: count.default(32),
  /** Sends `cache_salt`, which Octavo and vLLM know: no turn finds prompts that another left in the prefix cache. */
  cache_salt: z.boolean().default(true),
  /** The large tenant sends the small one's requests alone, too: what it gets otherwise for them is no matter of load. */
  compare_tenants: z.boolean().default(true),
  small_tenant: z.string().default("small"),
  large_tenant: z.string().default("large"),
};

export const fairnessSettings = z
  .strictObject({
    ...latencyMarginFields,
    ...twoTenantFields,
    /** The published rule: a tenant's 99th percentile over everybody's, in windows of this length. */
    aggregate_factor: positive.default(1.5),
    window_ms: positive.default(300_000),
    /**
     * Tokens by which others may have been served more than a tenant that waits, a prompt token counting 1 and an output
     * token 2. Undefined: reported, not held against anything.
     */
    service_gap_tokens: positive.optional(),
  })
  .transform(camelKeys);

/** Settings of the check `fairness`, with their defaults filled in. */
export type FairnessSettings = z.output<typeof fairnessSettings>;

export const tenantFairnessSettings = z
  .strictObject({
    ...latencyMarginFields,
    ...twoTenantFields,
    /** Loss of a tenant's score, from when it is alone (or, without that, from the other tenants'), that is accepted. */
    score_margin: share.default(0.05),
    /** The worst share of scores, whose mean is held against the same margin. */
    worst_share: z.number().gt(0).lt(1).default(0.1),
    /** The published rule: p99 latency over this multiple of the aggregate's, p99 score below the aggregate's less this. */
    aggregate_factor: positive.default(1.5),
    score_drop: share.default(0.05),
  })
  .transform(camelKeys);

/** Settings of the check `tenant-fairness`, with their defaults filled in. */
export type TenantFairnessSettings = z.output<typeof tenantFairnessSettings>;
