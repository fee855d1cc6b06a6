import { z } from "zod";
import { latencyMarginFields, twoTenantFields } from "../fairness/settings.js";
import { camelKeys, share } from "../settings.js";

const positive = z.number().gt(0);

export const tenantFairnessSettings = z
  .strictObject({
    ...latencyMarginFields,
    ...twoTenantFields,
    /** Conditions of a tenant alone, and beside others. */
    solo: z.string().default("solo"),
    shared: z.string().default("shared"),
    /** Loss of a tenant's score, from when it is alone (or, without that, from the other tenants'), that is accepted. */
    score_margin: share.default(0.05),
    /** The worst share of scores, whose mean is held against the same margin. */
    worst_share: z.number().gt(0).lt(1).default(0.1),
    /** The published rule: p99 latency over this multiple of the aggregate's, p99 score below the aggregate's less this. */
    aggregate_factor: positive.default(1.5),
    score_drop: share.default(0.05),
  })
  .transform(camelKeys);

export type TenantFairnessSettings = z.output<typeof tenantFairnessSettings>;
