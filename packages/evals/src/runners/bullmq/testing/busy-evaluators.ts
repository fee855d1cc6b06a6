import { z } from "zod";
import { defineEvaluator, type EvaluatorEntry } from "../../../evaluators/registry.js";

/** A row that holds its thread, as a scorer that computes does. */
export const evaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "test_busy",
    description: "Computes for so long.",
    inputs: ["output"],
    output: "pass_fail",
    options: z.strictObject({ forMs: z.int().positive() }),
    create: ({ forMs }) => ({
      score() {
        const until = performance.now() + forMs;
        let numTurns = 0;
        while (performance.now() < until) numTurns++;
        return { status: "scored", value: numTurns > 0 ? 1 : 0 };
      },
    }),
  }),
];
