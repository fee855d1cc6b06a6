import { z } from "zod";
import { camelKeys, comparisonFields, concurrency, share } from "../settings.js";

/** Rising numbers of tokens: a bucket ends before each, the last one is open. */
const edges = z
  .array(z.int().min(1))
  .min(1)
  .max(12)
  .refine((values) => values.every((value, index) => index === 0 || value > values[index - 1]!), {
    message: "expected rising numbers of tokens",
  });

export const tailSettings = z
  .strictObject({
    ...comparisonFields,
    concurrency: concurrency.default(4),
    /** Tokens of an answer that are scored together. */
    part_tokens: z.int().min(1).max(100_000).default(100),
    /** Evaluators that score parts of an answer as they would a whole one, such as groundedness or tone. */
    part_evaluators: z.array(z.string()).default([]),
    /** Which answers are looked at. */
    condition: z.string().default("candidate"),
    prompt_edges: edges.default([8_000, 32_000, 64_000]),
    output_edges: edges.default([500, 2_000]),
    /** How far below the shorter cells a cell may lie. */
    margin: share.default(0.05),
    /** The published rule looks for a cliff and names no height. */
    cliff: share.default(0.1),
    /** A cell with fewer documents or conversations is shown and not tested. */
    min_clusters: z.int().min(2).default(8),
  })
  .transform(camelKeys);

/** Settings of the check `tail`, with their defaults filled in. */
export type TailSettings = z.output<typeof tailSettings>;
