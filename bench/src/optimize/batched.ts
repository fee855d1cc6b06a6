import assert from "node:assert/strict";
import { type EvalCase, evaluatorTable, functionTarget } from "@octavo/evals";
import { LLM, type ChatOptions } from "@octavo/engine";
import { type Candidate, CandidateScorer } from "@octavo/optimize";
import { cases as miniCases } from "@octavo/octavo-mini";
import { listCases } from "./embedded-model.js";
import { embeddedModel } from "../support/served-model.js";
import { defaultModelFolder, modelFile } from "../cpu/models/model-file.js";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";

const numCandidates = 8;
const numCases = 40;
const together = 128;

interface Asked {
  readonly what: string;
  readonly model: string;
  readonly cases: readonly EvalCase[];
  readonly sampling: ChatOptions;
}

/** A round's candidates on their cases: as one batch, and one request at a time, on one engine; the order alternates. */
export async function benchBatched(rounds: number): Promise<readonly BenchCase[]> {
  const short = { temperature: 0, maxTokens: 48 };
  return [
    await measured(
      {
        what: "lists to number",
        model: embeddedModel,
        cases: listCases(1, "bench", numCases),
        sampling: short,
      },
      rounds,
    ),
    await measured(
      { what: "questions on passages", model: embeddedModel, cases: groundedCases(), sampling: short },
      rounds,
    ),
    // weights that no cache holds, and answers of some sentences
    await measured(
      {
        what: "answers of 128 tokens, qwen2.5-0.5b Q4_0",
        model: modelFile(defaultModelFolder(), "qwen2.5-0.5b", "q4_0").path,
        cases: listCases(1, "bench", 8),
        sampling: { temperature: 0, maxTokens: 128, ignoreEos: true },
      },
      rounds,
    ),
  ];
}

async function measured(
  { what, model, cases: evalCases, sampling }: Asked,
  rounds: number,
): Promise<BenchCase> {
  await using llm = await LLM.load(model, { maxNumSeqs: together });
  const target = functionTarget(what, async ({ messages }) => {
    const { text, usage } = await llm.chat(messages as never, sampling);
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
  return {
    name: `a round's candidates as one batch, against one request at a time: ${what}`,
    unit: "x",
    octavo: median(ratios),
    target: { atLeast: 5 },
    details: {
      ratios,
      cpuRatios,
      evaluationsPerSecond: median(rates),
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
