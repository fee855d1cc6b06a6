import { mean, type Random } from "@octavo/statistics";
import { z } from "zod";
import { type Candidate, candidateKey, type TunedPart } from "../artifact/candidate.js";
import { partText, type Search, traces } from "../search/search.js";
import { defineOptimizer } from "./optimizer.js";

const protegiOptions = z.strictObject({
  rounds: z.int().min(1).max(100).default(6),
  /** Candidates that a round leaves. */
  beam: z.int().min(1).max(100).default(4),
  minibatch: z.int().min(1).max(1000).default(64),
  /** Groups of errors that are criticised, of each candidate. */
  error_groups: z.int().min(1).max(20).default(4),
  errors_per_group: z.int().min(1).max(20).default(4),
  /** Criticisms of each group, and rewritings for each criticism. */
  gradients: z.int().min(1).max(20).default(4),
  rewrites: z.int().min(1).max(20).default(1),
  paraphrases: z.int().min(0).max(20).default(2),
  /** New candidates of one parent that enter the selection. */
  successors: z.int().min(1).max(100).default(8),
  selection: z
    .strictObject({
      rounds: z.int().min(1).max(1000).default(12),
      /** Candidates that are pulled in each, and cases that each then meets. */
      pulls: z.int().min(1).max(100).default(4),
      batch: z.int().min(1).max(100).default(5),
      exploration: z.number().min(0).max(10).default(2),
    })
    .prefault({}),
});

type ProTeGiOptions = z.output<typeof protegiOptions>;

/** An answer that scores less is an error. */
const errorBelow = 0.5;

/** Criticism of errors as gradients, edits along them, paraphrases around them, and a bandit that chooses whom to keep. */
export const protegi = defineOptimizer({
  name: "protegi",
  description: "Textual gradients from errors, rewritings and paraphrases, a beam chosen by a bandit.",
  paper:
    "Pryzant et al. 2023, Automatic Prompt Optimization with Gradient Descent and Beam Search (arXiv 2305.03495)",
  options: protegiOptions,
  async run(search, options) {
    let beam: readonly Candidate[] = [search.seed];
    for (let round = 0; round < options.rounds; round += 1) {
      const part = search.parts[round % search.parts.length]!;
      const minibatch = search.sample(options.minibatch);
      const results = await search.score(beam, minibatch);
      const pool = new Map(beam.map((one) => [candidateKey(one), one]));
      for (const [index, candidate] of beam.entries()) {
        const wrong = [...minibatch.keys()].filter((at) => results[index]![at]!.score < errorBelow);
        const successors = await expand(
          search,
          candidate,
          part,
          options,
          wrong.map((at) => ({
            shown: traces([minibatch[at]!], [results[index]![at]!]),
          })),
        );
        for (const one of search.random.shuffle(successors).slice(0, options.successors))
          pool.set(candidateKey(one), one);
      }
      beam = await selectByBandit(search, [...pool.values()], options);
      // so that a budget that ends before the last round leaves something
      await search.validate(beam.slice(0, 1), "leader");
    }
    await search.validate(beam, "beam");
  },
});

/** Errors in groups, criticisms of each group, a rewriting for each criticism, paraphrases of each rewriting. */
async function expand(
  search: Search,
  candidate: Candidate,
  part: TunedPart,
  options: ProTeGiOptions,
  errors: readonly { readonly shown: string }[],
): Promise<readonly Candidate[]> {
  const text = partText(candidate, part);
  const found: Candidate[] = [];
  for (let group = 0; group < options.error_groups && errors.length > 0; group += 1) {
    const shown = search.random
      .shuffle(errors)
      .slice(0, options.errors_per_group)
      .map((one) => one.shown)
      .join("\n\n");
    const gradients = await search.teacher.texts(
      `${text}\n\nWith it these cases went wrong:\n\n${shown}\n\nGive ${options.gradients} different reasons why the text led to these errors.`,
      "reason",
      options.gradients,
    );
    for (const gradient of gradients) {
      const edited = await search.rewritten(
        candidate,
        part,
        `${text}\n\nWith it these cases went wrong:\n\n${shown}\n\nThe reason is: ${gradient}\n\nWrite ${options.rewrites} improved texts that mend this.`,
        options.rewrites,
      );
      found.push(...edited);
      for (const one of edited)
        if (options.paraphrases > 0)
          found.push(
            ...(await search.rewritten(
              one,
              part,
              `${partText(one, part)}\n\nWrite ${options.paraphrases} variations of this text that keep its meaning.`,
              options.paraphrases,
            )),
          );
    }
  }
  return found;
}

interface Arm {
  readonly candidate: Candidate;
  readonly scores: number[];
}

/** The best by upper confidence bounds (the paper's UCB): what looks good or was hardly tried meets more cases. */
async function selectByBandit(
  search: Search,
  pool: readonly Candidate[],
  { beam, selection }: ProTeGiOptions,
): Promise<readonly Candidate[]> {
  if (pool.length <= beam) return pool;
  const arms: readonly Arm[] = pool.map((candidate) => ({ candidate, scores: [] }));
  for (let round = 1; round <= selection.rounds; round += 1) {
    const pulled = highest(arms, selection.pulls, search.random, ({ scores }) =>
      scores.length === 0
        ? Number.POSITIVE_INFINITY
        : mean(scores) + selection.exploration * Math.sqrt(Math.log(1 + round) / scores.length),
    );
    const cases = search.sample(selection.batch);
    const results = await search.score(
      pulled.map(({ candidate }) => candidate),
      cases,
    );
    for (const [index, arm] of pulled.entries())
      arm.scores.push(...results[index]!.map(({ score }) => score));
  }
  const tried = arms.filter(({ scores }) => scores.length > 0);
  return highest(tried, beam, search.random, ({ scores }) => mean(scores)).map(({ candidate }) => candidate);
}

/** The items of the highest values; equals in a random order. */
function highest<Item>(
  items: readonly Item[],
  count: number,
  random: Random,
  value: (item: Item) => number,
): readonly Item[] {
  const valued = random.shuffle(items).map((item) => ({ item, value: value(item) }));
  return valued
    .toSorted((a, b) => (a.value === b.value ? 0 : b.value > a.value ? 1 : -1))
    .slice(0, count)
    .map(({ item }) => item);
}
