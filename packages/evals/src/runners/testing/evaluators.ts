import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { defineEvaluator, noOptions, type EvaluatorEntry } from "../../evaluators/registry.js";

/** Rows that every runner is tested with; runners that score elsewhere load this module there. */
export const evaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "test_length",
    description: "The output's length modulo a number, over that number.",
    inputs: ["output"],
    output: "score",
    options: z.strictObject({ modulo: z.int().positive().default(100) }),
    create: ({ modulo }) => ({
      score: ({ answer }) => ({
        status: "scored",
        value: (answer.text.length % modulo) / modulo,
        details: { length: answer.text.length },
      }),
    }),
  }),
  defineEvaluator({
    name: "test_throws",
    description: "Throws for outputs that hold the word `throw`.",
    inputs: ["output"],
    output: "pass_fail",
    options: noOptions,
    create: () => ({
      score({ answer }) {
        if (answer.text.includes("throw")) throw new OctavoError("judge_failed", "as it was asked to");
        return { status: "scored", value: 1 };
      },
    }),
  }),
  defineEvaluator({
    name: "test_gold",
    description: "Skips what has no expected output.",
    inputs: ["output", "expectedOutput"],
    output: "pass_fail",
    options: noOptions,
    create: () => ({
      score: ({ case: { expected }, answer }) => ({
        status: "scored",
        value: expected.outputs?.includes(answer.text) === true ? 1 : 0,
      }),
    }),
  }),
];
