import { z } from "zod";
import { camelKeys, comparisonFields, concurrency, sequentialFields, share } from "../settings.js";

export const quantizationSettings = z
  .strictObject({
    ...comparisonFields,
    ...sequentialFields,
    /** Conditions of the unquantised answers and of those of the variant that ships. */
    baseline: z.string().default("baseline"),
    candidate: z.string().default("candidate"),
    concurrency: concurrency.default(4),
    /** Also runs each case's reference through both models token by token, where servers give logprobs of prompts. */
    forced: z.boolean().default(false),
    /** What is served: an agent cannot spare on calls and structure what a chat can. */
    workload: z.enum(["agent", "chat"]).default("agent"),
    /** Loss that is accepted on an axis. Default: 0.02 for an agent, 0.05 for a chat. */
    margin: share.optional(),
    /** By axis, evaluator or tag; an axis goes before an evaluator, and that before a tag. */
    margins: z.record(z.string(), share).default({}),
    /** Tags that make axes of their own: of the tags of a case, the first in this list. */
    axis_tags: z
      .array(z.string())
      .default(["tools", "json", "extraction", "grounded", "retrieval", "copying", "chat"]),
    /** An evaluator that compares the two answers to one case by itself: 1 where they mean the same. */
    preservation_evaluator: z.string().default("semantic_equivalence"),
  })
  .transform(camelKeys);

/** Settings of the check `quantization`, with their defaults filled in. */
export type QuantizationCheckSettings = z.output<typeof quantizationSettings>;

const defaultMargins = { agent: 0.02, chat: 0.05 } as const;

export function marginOf(
  {
    name,
    evaluator,
    tag,
  }: { readonly name: string; readonly evaluator: string; readonly tag: string | undefined },
  { margins, margin, workload }: QuantizationCheckSettings,
): number {
  return (
    margins[name] ??
    margins[evaluator] ??
    (tag === undefined ? undefined : margins[tag]) ??
    margin ??
    defaultMargins[workload]
  );
}
