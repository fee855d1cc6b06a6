import { z } from "zod";
import { partText } from "../search/search.js";
import { defineOptimizer } from "./optimizer.js";

/** The baseline: variations of the seed that nobody learned from. */
export const randomSearch = defineOptimizer({
  name: "random_search",
  description: "Variations of the seed, each scored on all of validation; the best is taken.",
  paper: "the baseline of the field: no feedback",
  options: z.strictObject({
    variations: z.int().min(1).max(1000).default(5),
    /** Variations that are asked for and scored together. */
    per_round: z.int().min(1).max(100).default(5),
  }),
  async run(search, { variations, per_round: perRound }) {
    for (let made = 0, round = 0; made < variations; round += 1) {
      const part = search.parts[round % search.parts.length]!;
      const count = Math.min(perRound, variations - made);
      const question = `${partText(search.seed, part)}\n\nWrite ${count} different variations of this text that may work better.`;
      const candidates = await search.rewritten(search.seed, part, question, count);
      await search.validate(candidates, "variation");
      made += Math.max(1, candidates.length);
    }
  },
});
