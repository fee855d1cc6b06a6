import assert from "node:assert/strict";
import { type EvalCase, evaluatorTable, functionTarget } from "@octavo/evals";
import { LLM } from "@octavo/engine";
import { type Candidate, CandidateScorer } from "@octavo/optimize";
import { cases as miniCases } from "@octavo/octavo-mini";
import { listCases } from "./embedded-model.js";
import { embeddedModel } from "../support/served-model.js";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";

const numCandidates = 8;
const numCases = 40;
const together = 128;

/** A round's candidates on their cases: as one batch, and one request at a time, on one engine; the order alternates. */
export async function benchBatched(rounds: number): Promise<readonly BenchCase[]> {
  await using llm = await LLM.load(embeddedModel, { maxNumSeqs: together });
  const gains = await batchGains(llm, rounds);
  return [
    await measured(llm, {
      what: "lists to number",
      evalCases: listCases(1, "bench", numCases),
      rounds,
      gains,
    }),
    await measured(llm, { what: "questions on passages", evalCases: groundedCases(), rounds, gains }),
    await measured(llm, {
      what: "answers of 96 tokens",
      evalCases: listCases(1, "bench", numCases / 4),
      rounds,
      gains,
      length: 96,
    }),
  ];
}

/** Seconds of a token alone and in a batch. */
interface TokenSeconds {
  readonly alone: number;
  readonly batched: number;
}

interface BatchGains {
  readonly prompt: TokenSeconds;
  readonly output: TokenSeconds;
}

/** What a token of a prompt, and one of an answer, takes on this machine alone and in a batch: no batch of requests gains more. */
async function batchGains(llm: LLM, rounds: number): Promise<BatchGains> {
  let next = 0;
  const seconds = async (words: number, tokens: number, concurrency: number): Promise<number> => {
    const count = 64;
    const started = performance.now();
    let numTokens = 0;
    const one = async (): Promise<void> => {
      const prompt = Array.from({ length: words }, (_, at) => `${(next += 7919) % 10_007} ${at}`).join(" ");
      const { usage } = await llm.generate(prompt, { temperature: 0, maxTokens: tokens, minTokens: tokens });
      numTokens += tokens === 1 ? usage.promptTokens : usage.completionTokens;
    };
    for (let start = 0; start < count; start += concurrency)
      await Promise.all(Array.from({ length: concurrency }, one));
    return (performance.now() - started) / 1000 / numTokens;
  };
  const medians = async (words: number, tokens: number): Promise<TokenSeconds> => {
    const [alone, batched]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      alone.push(await seconds(words, tokens, 1));
      batched.push(await seconds(words, tokens, 64));
    }
    return { alone: median(alone), batched: median(batched) };
  };
  await seconds(8, 8, 64);
  return { prompt: await medians(40, 1), output: await medians(1, 64) };
}

interface MeasuredTask {
  readonly what: string;
  readonly evalCases: readonly EvalCase[];
  readonly rounds: number;
  readonly gains: BatchGains;
  /** Of every answer; without it answers end by themselves. */
  readonly length?: number;
}

async function measured(
  llm: LLM,
  { what, evalCases, rounds, gains, length }: MeasuredTask,
): Promise<BenchCase> {
  const limits = length === undefined ? { maxTokens: 48 } : { maxTokens: length, minTokens: length };
  let tokens = { computed: 0, output: 0 };
  const target = functionTarget("octavo-mini", async ({ messages }) => {
    const { text, usage } = await llm.chat(messages as never, { temperature: 0, ...limits });
    const { promptTokens, cachedTokens, completionTokens } = usage;
    tokens = {
      computed: tokens.computed + promptTokens - cachedTokens,
      output: tokens.output + completionTokens,
    };
    return { text, usage };
  });
  const evaluators = evaluatorTable.create(["exact_match"]);
  const scoredBy = async (
    concurrency: number,
    round: number,
  ): Promise<{
    readonly seconds: number;
    readonly cpuSeconds: number;
    readonly outputs: readonly string[];
  }> => {
    const scorer = new CandidateScorer({
      target,
      evaluators,
      concurrency,
      seed: 1,
      fingerprint: "",
      signal: new AbortController().signal,
    });
    const asked = candidates(round).flatMap((candidate) =>
      evalCases.map((evalCase) => ({ candidate, evalCase })),
    );
    tokens = { computed: 0, output: 0 };
    const cpuBefore = process.cpuUsage();
    const started = performance.now();
    const results = await scorer.scoreAll(asked);
    const { user, system } = process.cpuUsage(cpuBefore);
    return {
      seconds: (performance.now() - started) / 1000,
      cpuSeconds: (user + system) / 1e6,
      outputs: results.map(({ output }) => output),
    };
  };
  await scoredBy(together, -1);
  const ratios: number[] = [];
  const rates: number[] = [];
  const cpuRatios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // other prompts each time, so that neither finds the other's prefixes
    const first = round % 2 === 0 ? together : 1;
    const one = await scoredBy(first, 2 * round);
    const other = await scoredBy(first === 1 ? together : 1, 2 * round + 1);
    const [batch, single] = first === 1 ? [other, one] : [one, other];
    ratios.push(single.seconds / batch.seconds);
    cpuRatios.push(single.cpuSeconds / batch.cpuSeconds);
    rates.push((numCandidates * evalCases.length) / batch.seconds);
  }
  const [batch, single] = [await scoredBy(together, 1000), await scoredBy(1, 1000)];
  assert.deepEqual(batch.outputs, single.outputs, "answers are the same in a batch and alone");
  const spent = (how: keyof TokenSeconds): number =>
    tokens.computed * gains.prompt[how] + tokens.output * gains.output[how];
  return {
    name: `a round's candidates as one batch, against one request at a time: ${what}`,
    unit: "x",
    octavo: median(ratios),
    target: { atLeast: 5 },
    details: {
      ratios,
      cpuRatios,
      evaluationsPerSecond: median(rates),
      promptTokensComputed: tokens.computed,
      outputTokens: tokens.output,
      gainOfPromptTokens: gains.prompt.alone / gains.prompt.batched,
      gainOfOutputTokens: gains.output.alone / gains.output.batched,
      expectedFromThese: spent("alone") / spent("batched"),
      numCandidates,
      numCases: evalCases.length,
      concurrency: together,
    },
  };
}

/** Prompts of some hundred tokens, as they are tuned in practice: every case of a candidate shares its prefix. */
function candidates(round: number): readonly Candidate[] {
  const rules = [
    "Answer from the passage only.",
    "Say one sentence.",
    "Use the words of the passage.",
    "Do not guess.",
    "Names are written as they stand.",
  ];
  return Array.from({ length: numCandidates }, (_, index) => {
    const lines = Array.from(
      { length: 16 },
      (__, at) => `${at + 1}. ${rules[(index * 7 + at * 3 + round) % rules.length]}`,
    );
    return { texts: { prompt: `Round ${round}, candidate ${index}.\n${lines.join("\n")}` }, shots: [] };
  });
}

function groundedCases(): readonly EvalCase[] {
  const source = miniCases({ task: "grounded", split: "heldout", seed: "bench" });
  return Array.from({ length: numCases }, () => {
    const { id, messages, gold } = source.next().value;
    const user = { role: "user" as const, content: messages.at(-1)?.content ?? "" };
    return { ...listCases(1, id, 1)[0]!, id, messages: [user], expected: { outputs: [gold] } };
  });
}
