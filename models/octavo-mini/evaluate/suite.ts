import { type GoldenCase, type TaskName, cases } from "../generator/index.js";
import type { ChatClient } from "./client.js";
import { type Measures, score } from "./score.js";

export interface SuiteFigure {
  readonly measure: string;
  readonly right: number;
  readonly of: number;
}

export interface WrongAnswer {
  readonly id: string;
  readonly answer: string;
  readonly gold: string;
}

export interface SuiteResult {
  readonly figures: readonly SuiteFigure[];
  readonly failures: readonly WrongAnswer[];
}

export interface SuiteOptions {
  readonly client: ChatClient;
  readonly count: number;
  readonly seed: string;
  readonly concurrency: number;
  /** Default all. */
  readonly tasks?: readonly TaskName[];
}

interface Part {
  readonly task: TaskName;
  readonly contextTokens?: number;
}

const parts: readonly Part[] = [
  { task: "chat" },
  { task: "extraction" },
  { task: "tools" },
  { task: "grounded" },
  { task: "copying" },
  ...[512, 1024, 2048, 4096].map((contextTokens): Part => ({ task: "retrieval", contextTokens })),
];

export async function runSuite(options: SuiteOptions): Promise<SuiteResult> {
  const figures: SuiteFigure[] = [];
  const failures: WrongAnswer[] = [];
  for (const part of parts) {
    if (options.tasks?.includes(part.task) === false) continue;
    const result = await runPart(part, options);
    figures.push(...result.figures);
    failures.push(...result.failures);
  }
  return { figures, failures };
}

async function runPart(part: Part, { client, count, seed, concurrency }: SuiteOptions): Promise<SuiteResult> {
  const stream = cases({ ...part, split: "heldout", seed });
  const asked = Array.from({ length: count }, () => stream.next().value);
  const tally = new Map<string, { right: number; of: number }>();
  const failures: WrongAnswer[] = [];
  let promptTokens = 0;

  const askOne = async (one: GoldenCase & { readonly id: string }): Promise<void> => {
    const answer = await client.ask(one.messages, one.tools, 1024);
    promptTokens += answer.promptTokens;
    const measures = score(one, answer);
    addTo(tally, measures);
    if (Object.values(measures).includes(false))
      failures.push({ id: one.id, answer: answer.content || JSON.stringify(answer.calls), gold: one.gold });
  };
  const waiting = asked[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const one of waiting) await askOne(one);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));

  const suffix = part.contextTokens === undefined ? "" : `, ${Math.round(promptTokens / count)} tokens`;
  const figures = [...tally].map(([measure, { right, of }]) => ({ measure: measure + suffix, right, of }));
  return { figures: figures.sort((a, b) => a.measure.localeCompare(b.measure)), failures };
}

function addTo(tally: Map<string, { right: number; of: number }>, measures: Measures): void {
  for (const [measure, held] of Object.entries(measures)) {
    const entry = tally.get(measure) ?? { right: 0, of: 0 };
    entry.right += held ? 1 : 0;
    entry.of += 1;
    tally.set(measure, entry);
  }
}
