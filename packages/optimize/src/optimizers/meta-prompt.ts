import { z } from "zod";
import { meanScore, partText, traces } from "../search/search.js";
import { defineOptimizer } from "./optimizer.js";

/** Shows the teacher what the current text led to and what was tried before, and takes its next try. */
export const metaPrompt = defineOptimizer({
  name: "meta_prompt",
  description: "The teacher sees annotated answers and past attempts with their scores, and writes the next.",
  paper:
    "closest to OPRO, Yang et al. 2023 (arXiv 2309.03409): the history of texts and scores is the gradient",
  options: z.strictObject({
    rounds: z.int().min(1).max(1000).default(5),
    batch: z.int().min(1).max(1000).default(40),
    /** Answers that the teacher is shown, worst first. */
    shown: z.int().min(1).max(100).default(10),
    /** Past attempts that it is shown, best last. */
    history: z.int().min(0).max(100).default(20),
  }),
  async run(search, options) {
    // one batch for all rounds: scores of the history can be compared
    const batch = search.sample(options.batch);
    let current = search.seed;
    const tried: { readonly text: string; readonly score: number }[] = [];
    for (let round = 0; round < options.rounds; round += 1) {
      const part = search.parts[round % search.parts.length]!;
      const [results = []] = await search.score([current], batch);
      tried.push({ text: partText(current, part), score: meanScore(results) });
      const worst = [...batch.keys()]
        .toSorted((a, b) => results[a]!.score - results[b]!.score)
        .slice(0, options.shown);
      const history = tried
        .toSorted((a, b) => a.score - b.score)
        .slice(-options.history)
        .map(({ text, score }) => `Scored ${score.toFixed(3)}. ${text}`);
      const question = [
        partText(current, part),
        "Earlier attempts, best last:",
        ...history,
        "What the text above led to, worst first:",
        traces(
          worst.map((at) => batch[at]!),
          worst.map((at) => results[at]!),
        ),
        "State in one sentence your hypothesis of what costs most score, then write a text that scores higher than all earlier attempts.",
      ].join("\n\n");
      const [next] = await search.rewritten(current, part, question);
      if (next === undefined) continue;
      await search.validate([next], "rewritten");
      const [scored = []] = await search.score([next], batch);
      // a try that is worse is remembered, and the next one starts from what was better
      if (meanScore(scored) >= meanScore(results)) current = next;
      else tried.push({ text: partText(next, part), score: meanScore(scored) });
    }
  },
});
