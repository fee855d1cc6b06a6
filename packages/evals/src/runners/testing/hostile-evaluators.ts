import { defineEvaluator, noOptions, type EvaluatorEntry } from "../../evaluators/registry.js";

/** For runners that score on threads or machines of their own: a row that kills its process for some outputs. */
export const hostileModule = import.meta.url;

export const evaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "test_hostile",
    description: "Ends the process for `exit`, never ends for `spin`.",
    inputs: ["output"],
    output: "pass_fail",
    options: noOptions,
    create: () => ({
      score({ answer }) {
        if (answer.text === "exit") process.exit(3);
        while (answer.text === "spin") continue;
        return { status: "scored", value: 1 };
      },
    }),
  }),
];
