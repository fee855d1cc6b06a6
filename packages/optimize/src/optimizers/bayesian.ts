import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Candidate } from "../artifact/candidate.js";
import { shotsOf } from "./shots.js";
import { defineOptimizer } from "./optimizer.js";
import { proposeSet, type Trial } from "./tpe.js";

/** Which training cases stand in the prompt as examples, and how many. */
export const bayesianSearch = defineOptimizer({
  name: "bayesian",
  description: "Sets of few-shot examples, proposed by a tree-structured Parzen estimator.",
  paper:
    "Bergstra et al. 2011, Algorithms for Hyper-Parameter Optimization; over examples as in MIPROv2 (arXiv 2406.11695)",
  options: z.strictObject({
    trials: z.int().min(1).max(10_000).default(20),
    /** Trials that are proposed and scored together. */
    per_round: z.int().min(1).max(100).default(2),
    min_examples: z.int().min(1).max(64).default(2),
    max_examples: z.int().min(1).max(64).default(8),
    /** Training cases to choose from. */
    pool: z.int().min(1).max(1000).default(32),
    startup: z.int().min(1).max(1000).default(6),
    gamma: z.number().gt(0).lt(1).default(0.25),
    draws: z.int().min(1).max(1000).default(24),
  }),
  needsTeacher: false,
  findsExamples: () => true,
  async run(search, options) {
    const pool = shotsOf(search.sample(search.train.length)).slice(0, options.pool);
    const maxSize = Math.min(options.max_examples, pool.length);
    const minSize = Math.min(options.min_examples, maxSize);
    if (pool.length === 0)
      throw new OctavoError(
        "dataset_invalid",
        "bayesian needs training cases with expected outputs: they become the examples",
        {
          param: "train",
        },
      );
    const space = { numItems: pool.length, minSize, maxSize };
    const trials: Trial[] = [];
    while (trials.length < options.trials) {
      const sets: (readonly number[])[] = [];
      for (let each = 0; each < Math.min(options.per_round, options.trials - trials.length); each += 1)
        sets.push(proposeSet(trials, space, options, search.random));
      const candidates = sets.map((items): Candidate => ({
        ...search.seed,
        shots: items.map((item) => pool[item]!),
      }));
      const validated = await search.validate(candidates, "examples");
      for (const [index, items] of sets.entries()) trials.push({ items, score: validated[index]!.score });
    }
  },
});
