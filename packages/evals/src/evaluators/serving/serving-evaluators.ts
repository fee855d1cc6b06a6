import { z } from "zod";
import { skipped, verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";

const inputs = ["serving"] as const;
const maxMs = z.number().positive();

/** How the answer was served, case by case; statistics over many are the checks'. */
export const servingEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "latency_below",
    description: "The whole answer came within so many milliseconds of when it was due.",
    inputs,
    options: z.strictObject({ maxMs }),
    score({ answer: { timing } }, options) {
      const waitedMs = timing.sentEpochMs - timing.scheduledEpochMs;
      const totalMs = waitedMs + timing.durationMs;
      return verdict(totalMs <= options.maxMs, `it took ${Math.round(totalMs)} ms`, { totalMs });
    },
  }),
  defineEvaluator({
    name: "first_token_below",
    description: "The first piece of a streamed answer came within so many milliseconds of when it was due.",
    inputs,
    options: z.strictObject({ maxMs }),
    score({ answer: { timing } }, options) {
      const [firstMs] = timing.pieceMs;
      if (firstMs === undefined) return skipped("the answer was not streamed");
      const totalMs = timing.sentEpochMs - timing.scheduledEpochMs + firstMs;
      return verdict(totalMs <= options.maxMs, `it took ${Math.round(totalMs)} ms`, { totalMs });
    },
  }),
  defineEvaluator({
    name: "completion_tokens_below",
    description: "The answer has at most so many tokens.",
    inputs,
    options: z.strictObject({ maxTokens: z.int().positive() }),
    score({ answer: { usage } }, { maxTokens }) {
      const { completionTokens } = usage;
      if (completionTokens === undefined) return skipped("the server gave no token counts");
      return verdict(completionTokens <= maxTokens, `it has ${completionTokens} tokens`, {
        completionTokens,
      });
    },
  }),
  defineEvaluator({
    name: "not_truncated",
    description: "The answer ended by itself, not at its token limit.",
    inputs,
    score({ answer: { finishReason } }) {
      if (finishReason === undefined) return skipped("the server gave no finish reason");
      return verdict(finishReason !== "length", "it was cut off at its token limit", { finishReason });
    },
  }),
];
