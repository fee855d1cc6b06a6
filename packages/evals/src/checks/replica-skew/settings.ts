import { z } from "zod";
import { camelKeys, comparisonFields, concurrency, sequentialFields, share } from "../settings.js";

export const replicaSkewSettings = z
  .strictObject({
    ...comparisonFields,
    ...sequentialFields,
    /** One by default: on servers whose results depend on the batch, machines can only be compared at batch size 1. */
    concurrency: concurrency.default(1),
    /** Which answers are looked at; null: all that name their replica. */
    condition: z.string().nullable().default("replica"),
    /** How far a replica may lie below the others. */
    margin: share.default(0.02),
    /** Share of answers by which a replica may differ from the others, to be excluded before "it is the same" passes. */
    difference_margin: share.default(0.05),
    /** Same weights on the same kind of processor: then equal logits are expected, and a replica that differs is broken. */
    is_homogeneous: z.boolean().default(true),
    /** The published rule: replicas within this of each other are healthy, and one this far below the best has drifted. */
    healthy_spread: share.default(0.02),
    drifted_drop: share.default(0.05),
  })
  .transform(camelKeys);

/** Settings of the check `replica-skew`, with their defaults filled in. */
export type ReplicaSkewSettings = z.output<typeof replicaSkewSettings>;
