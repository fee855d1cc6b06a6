import type { Random } from "@octavo/statistics";
import { noiseSentences } from "./needles.js";
import type { RulerTask } from "./ruler-task.js";
import { drawLetters } from "./words.js";

const numHops = 4;
const exampleHops = 4;
const exampleNoise = 3;
const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

interface Chain {
  readonly names: readonly string[];
  readonly value: string;
  readonly assignments: readonly string[];
  /** Position of each assignment in the noise, as a fraction of its length, ascending. */
  readonly depths: readonly number[];
}

/** RULER's variable tracking: one chain of assignments through noise, after an example of one. */
export const variableTracking: RulerTask = {
  name: "vt",
  answerTokens: 30,
  match: "all",
  needs: "nothing",
  draw({ random }) {
    const example = drawChain(random.fork(1), exampleHops, 3);
    const chain = drawChain(random, numHops, 5);
    const shown = `${question(example, exampleNoise)}\n${example.names.join(" ")}\n\n`;
    return {
      references: chain.names,
      minSize: 1,
      maxSize: Infinity,
      prompt: (size) => `${shown}${question(chain, size)}`,
    };
  },
};

function drawChain(random: Random, hops: number, nameLength: number): Chain {
  const names = new Set<string>();
  while (names.size <= hops) names.add(drawLetters(random, capitals, nameLength));
  const [first = "", ...others] = names;
  const value = String(random.integer(10_000, 99_999));
  const all = [first, ...others];
  return {
    names: all,
    value,
    assignments: [
      `VAR ${first} = ${value}`,
      ...others.map((name, index) => `VAR ${name} = VAR ${all[index] ?? ""}`),
    ],
    depths: all.map(() => random.uniform()).toSorted((a, b) => a - b),
  };
}

function question({ assignments, depths, value }: Chain, noise: number): string {
  const lines: string[] = [];
  let next = 0;
  for (let at = 0; at <= noise; at++) {
    for (; next < assignments.length && Math.round((depths[next] ?? 0) * noise) === at; next++) {
      lines.push(assignments[next] ?? "");
    }
    if (at < noise) lines.push(noiseSentences);
  }
  return [
    "Follow the chain of variable assignments that is hidden in the text below.",
    "",
    lines.join("\n"),
    "",
    `Which variables have the value ${value}? Name every one of them, in the text's order, and nothing else.`,
  ].join("\n");
}
