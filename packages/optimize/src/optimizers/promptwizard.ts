import { z } from "zod";
import type { Candidate, Shot, TunedPart } from "../artifact/candidate.js";
import { material } from "../search/teacher.js";
import { meanScore, partText, type Search, traces } from "../search/search.js";
import { defineOptimizer } from "./optimizer.js";
import { shotsOf } from "./shots.js";

const promptWizardOptions = z.strictObject({
  /** Rounds of mutation, scoring, critique and refinement of the instruction. */
  refinements: z.int().min(1).max(100).default(3),
  /** Mutations of a round: each by another thinking style. */
  styles: z.int().min(1).max(20).default(3),
  /** Training cases that mutations meet. */
  batch: z.int().min(1).max(1000).default(25),
  /** Rounds in which instruction and examples are refined in turn. */
  iterations: z.int().min(0).max(100).default(2),
  examples: z.int().min(0).max(64).default(5),
  /** Examples are rewritten against their critique; otherwise they are training cases as they are. */
  synthetic_examples: z.boolean().default(true),
  /** A chain of reasoning before each example's output. */
  reasoning: z.boolean().default(true),
});

type WizardOptions = z.output<typeof promptWizardOptions>;

/** Ways to look at a task, so that mutations differ. */
const thinkingStyles = [
  "Break the task into steps.",
  "Say which mistakes are likely and how to avoid them.",
  "Say exactly what form the answer has.",
  "Think of what an expert of this task would know.",
  "Simplify: what is the least that must be said?",
  "Look at the edge cases.",
  "Say how to check the answer before giving it.",
  "Ask what the question really wants.",
];

/** Critique and refine the instruction, choose examples where it still fails, refine both in turn, add reasoning. */
export const promptWizard = defineOptimizer({
  name: "promptwizard",
  description: "Mutation by thinking styles, critique and refinement; examples and reasoning evolve with it.",
  paper: "Agarwal et al. 2024, PromptWizard: Task-Aware Prompt Optimization Framework (arXiv 2405.18369)",
  options: promptWizardOptions,
  findsExamples: ({ examples }) => examples > 0,
  async run(search, options) {
    let best = search.seed;
    for (const part of search.parts) {
      for (let round = 0; round < options.refinements; round += 1)
        best = await refineText(search, best, part, options);
      await search.validate([best], "refined");
    }
    let shots = await chooseExamples(search, best, options.examples);
    for (let round = 0; round < options.iterations && options.examples > 0; round += 1) {
      if (options.synthetic_examples) shots = await refineExamples(search, best, shots);
      const withShots: Candidate = { ...best, shots };
      await search.validate([withShots], "examples");
      const part = search.parts[round % search.parts.length]!;
      const refined = await refineText(search, withShots, part, options);
      await search.validate([refined], "co-evolved");
      best = { ...refined, shots: best.shots };
    }
    if (!options.reasoning || shots.length === 0) return;
    const reasoned = await addReasoning(search, best, shots);
    await search.validate(
      [
        { ...best, shots: reasoned },
        { ...best, shots },
      ],
      "reasoning",
    );
  },
});

/** Mutations by thinking styles meet one batch; the best of them is criticised by what it gets wrong, and rewritten. */
async function refineText(
  search: Search,
  candidate: Candidate,
  part: TunedPart,
  { styles, batch }: WizardOptions,
): Promise<Candidate> {
  const cases = search.sample(batch, candidate);
  const mutations: Candidate[] = [];
  for (const style of search.random.shuffle(thinkingStyles).slice(0, styles)) {
    const question = `${partText(candidate, part)}\n\nWrite a variation of this text in this way: ${style}`;
    mutations.push(...(await search.rewritten(candidate, part, question)));
  }
  const pool = [candidate, ...mutations];
  const results = await search.score(pool, cases);
  const order = [...pool.keys()].toSorted((a, b) => meanScore(results[b]!) - meanScore(results[a]!));
  const [first = 0] = order;
  const [top, topResults] = [pool[first]!, results[first]!];
  const wrong = [...cases.keys()].filter((at) => topResults[at]!.score < 1).slice(0, 5);
  if (wrong.length === 0) return top;
  const shown = traces(
    wrong.map((at) => cases[at]!),
    wrong.map((at) => topResults[at]!),
  );
  const [critique] = await search.teacher.texts(
    `${partText(top, part)}\n\nWith it these cases went wrong:\n\n${shown}\n\nCriticise the text: what is missing, unclear or wrong?`,
    "critique",
  );
  if (critique === undefined) return top;
  const question = `${partText(top, part)}\n\n${material("Critique", critique)}\n\nWith it these cases went wrong:\n\n${shown}\n\nRewrite the text so that the critique no longer holds.`;
  const [refined] = await search.rewritten(top, part, question);
  if (refined === undefined) return top;
  const [scored = []] = await search.score([refined], cases);
  return meanScore(scored) > meanScore(topResults) ? refined : top;
}

/** Training cases that the candidate gets wrong, filled up with others: negative examples teach more. */
async function chooseExamples(search: Search, candidate: Candidate, count: number): Promise<readonly Shot[]> {
  const cases = search.sample(Math.max(count * 5, 25), candidate);
  const [results = []] = await search.score([candidate], cases);
  const order = [...cases.keys()].toSorted((a, b) => results[a]!.score - results[b]!.score);
  return shotsOf(order.map((at) => cases[at]!)).slice(0, count);
}

/** Examples rewritten after their critique. Those that come back unreadable stay as they were. */
async function refineExamples(
  search: Search,
  candidate: Candidate,
  shots: readonly Shot[],
): Promise<readonly Shot[]> {
  const prompt = Object.values(candidate.texts).join("\n\n");
  const shown = shots.map((shot, index) => exampleText(shot, index)).join("\n\n");
  const [critique] = await search.teacher.texts(
    `${material("The instructions", prompt)}\n\n${shown}\n\nCriticise these examples: which kinds of cases do they leave out, and which teach nothing?`,
    "critique",
  );
  if (critique === undefined) return shots;
  const written = await search.teacher.texts(
    `${material("The instructions", prompt)}\n\n${shown}\n\n${material("Critique", critique)}\n\nWrite ${shots.length} examples that do better. Each has a line that begins with "Input:" and then one that begins with "Output:".`,
    "example",
    shots.length,
  );
  const fresh = written.flatMap((text) => exampleIn(text) ?? []);
  if (fresh.length > 0) search.teacher.noteNew();
  return [...fresh, ...shots].slice(0, shots.length);
}

/** Why each output follows from its input, in a sentence or two. */
async function addReasoning(
  search: Search,
  candidate: Candidate,
  shots: readonly Shot[],
): Promise<readonly Shot[]> {
  const prompt = material("The instructions", Object.values(candidate.texts).join("\n\n"));
  const reasoned: Shot[] = [];
  for (const [index, shot] of shots.entries()) {
    const [reasoning] = await search.teacher.texts(
      `${prompt}\n\n${exampleText(shot, index)}\n\nExplain step by step how the input leads to this output. Do not repeat the output.`,
      "reasoning",
    );
    if (reasoning !== undefined) search.teacher.noteNew();
    reasoned.push(reasoning === undefined ? shot : { ...shot, reasoning });
  }
  return reasoned;
}

function exampleText({ input, output }: Shot, index: number): string {
  return material(`Example ${index + 1}`, `Input: ${input}\nOutput: ${output}`);
}

function exampleIn(text: string): Shot | undefined {
  const [, input = "", output = ""] = /^Input:\s*([\s\S]+?)\nOutput:\s*([\s\S]+)$/.exec(text) ?? [];
  return input.trim() === "" || output.trim() === ""
    ? undefined
    : { input: input.trim(), output: output.trim() };
}
