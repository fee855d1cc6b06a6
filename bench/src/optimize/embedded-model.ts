import { type EvalCase, evaluatorTable, functionTarget } from "@octavo/evals";
import { LLM } from "@octavo/engine";
import { optimizePrompts, type OptimizeResult } from "@octavo/optimize";
import { rulesTask } from "@octavo/optimize/testing/rules-task";
import { Random } from "@octavo/statistics";
import { embeddedModel } from "../support/served-model.js";
import type { BenchCase } from "../support/results.js";

const seeds = 10;
/** Instructions of octavo-mini's own tasks, and some of none: those that number are what is wanted here. */
const numbering = ["Number these items:", "Write these as a numbered list:", "Make a numbered list of:"];
const others = [
  "Write these as a bullet list:",
  "Put a dash before each item:",
  "Make a bullet list of:",
  "Turn this list into a JSON array:",
  "Write these as a JSON array:",
  "Put each item on its own line:",
  "Write these one per line:",
  "Join these items with commas:",
  "Write these separated by commas:",
  "Copy:",
  "Say this again, unchanged:",
  "Repeat this text exactly:",
  "Repeat after me:",
  "Echo the text below.",
  "Write exactly this:",
  "Write this list in reverse order:",
  "Copy the following text word for word:",
  'Answer from the passage only. If the answer is not there, say "Not in the passage."',
  "Reply with one sentence from what the text says.",
  "Who are you?",
  "Here are some items, as you see:",
  "Name one of these:",
  "Read the passage and answer the question.",
  "Look at the following carefully:",
];
const things =
  "lamp,river,stone,cloud,garden,bridge,letter,window,candle,forest,mirror,basket,engine,harbor,ladder,needle".split(
    ",",
  );

/** GEPA beside random search at an equal budget on held-out cases, ten seeds each. */
export async function benchAgainstRandom(): Promise<readonly BenchCase[]> {
  const synthetic = await winsOf(async (name, seed) => {
    const task = rulesTask({ seed, sizes: { train: 48, validation: 30, heldOut: 60 } });
    return optimizePrompts({
      ...task,
      teacher: { model: task.teacher },
      optimizer: optimizerOf(name),
      budget: { calls: 900 },
      randomSeed: seed,
    });
  });
  await using llm = await LLM.load(embeddedModel);
  const target = functionTarget("octavo-mini", async ({ messages }) => {
    const { text, usage } = await llm.chat(messages as never, { temperature: 0, maxTokens: 64 });
    return { text, usage };
  });
  const embedded = await winsOf((name, seed) =>
    optimizePrompts({
      target,
      evaluators: evaluatorTable.create(["exact_match"]),
      cases: {
        train: listCases(seed, "train", 24),
        validation: listCases(seed, "validation", 16),
        heldOut: listCases(seed, "held-out", 40),
      },
      seed: { texts: { prompt: "Here are some items:\n{{input}}" }, shots: [] },
      parts: [{ id: "prompt", text: "" }],
      teacher: { model: phraseTeacher },
      optimizer: optimizerOf(name),
      budget: { calls: 120 },
      randomSeed: seed,
    }),
  );
  return [
    {
      name: "seeds on which GEPA is at least random search, synthetic",
      unit: "of 10",
      octavo: synthetic.wins,
      target: { atLeast: 9 },
      details: synthetic,
    },
    {
      name: "seeds on which GEPA is at least random search, octavo-mini",
      unit: "of 10",
      octavo: embedded.wins,
      target: { atLeast: 9 },
      details: embedded,
    },
  ];
}

function optimizerOf(name: string) {
  return name === "random_search" ? { name, options: { variations: 1000, per_round: 2 } } : { name };
}

async function winsOf(run: (name: string, seed: number) => Promise<OptimizeResult>) {
  const rows: { readonly gepa: number; readonly random: number }[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const [gepa, random] = [await run("gepa", seed), await run("random_search", seed)];
    rows.push({ gepa: heldOut(gepa), random: heldOut(random) });
  }
  return { wins: rows.filter(({ gepa, random }) => gepa >= random).length, rows };
}

function heldOut({ heldOut: judged, validation }: OptimizeResult): number {
  return judged?.winner ?? validation.seed ?? 0;
}

/** Lists that are to be numbered. */
export function listCases(seed: number, part: string, count: number): readonly EvalCase[] {
  const random = new Random(seed * 1000 + part.length);
  return Array.from({ length: count }, (_, index) => {
    const items = random.shuffle(things).slice(0, random.integer(3, 6));
    return {
      id: `${part}-${index}`,
      messages: [{ role: "user" as const, content: items.join(", ") }],
      tools: [],
      context: undefined,
      expected: { outputs: [items.map((item, at) => `${at + 1}. ${item}`).join("\n")] },
      parameters: {},
      tenant: undefined,
      cluster: undefined,
      tags: [],
      metadata: {},
    };
  });
}

/** Takes an instruction at random, or where it is shown that answers are numbered, more often one that numbers. */
const phraseTeacher = functionTarget("teacher", ({ messages, parameters }) => {
  const question = messages.at(-1)?.content ?? "";
  const random = new Random(parameters.seed ?? 0);
  const count = Number(/each of the (\d+)/.exec(question)?.[1] ?? 1);
  const sawNumbers = /Expected: 1\. /.test(question);
  const one = (): string =>
    random.pick(sawNumbers && random.uniform() < 0.5 ? numbering : [...numbering, ...others]);
  return Array.from({ length: count }, () => `<text>${one()}\n{{input}}</text>`).join("\n");
});
