// Decode speed at batch 1 with speculation against the same without: extraction, where drafts come true, and free sampling,
// where they miss. Answers with and without must be the same tokens, or nothing is reported.
import assert from "node:assert/strict";
import { type GenerateOptions, LLM, type SpeculativeConfig } from "@octavo/engine";
import { cases } from "@octavo/octavo-mini";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const numPrompts = 24;
const rounds = 9;

const methods: Readonly<Record<string, SpeculativeConfig>> = {
  ngram: { method: "ngram", numSpeculativeTokens: 8, promptLookupMin: 1, promptLookupMax: 4 },
  suffix: { method: "suffix" },
};

interface Workload {
  readonly name: string;
  /** Other ones in each round: what is remembered of earlier answers must not be these answers. */
  readonly promptsOf: (round: number) => readonly string[];
  readonly options: GenerateOptions;
  readonly atLeast?: number;
}

interface Pass {
  readonly texts: readonly string[];
  /** Between first and last tokens. */
  readonly tokensPerSecond: number;
  readonly draftTokens: number;
  readonly acceptedTokens: number;
}

/** One prompt after the other, nothing of the one before in the prefix cache. */
async function pass(llm: LLM, prompts: readonly string[], options: GenerateOptions): Promise<Pass> {
  const texts: string[] = [];
  let tokens = 0;
  let decodeMs = 0;
  let draftTokens = 0;
  let acceptedTokens = 0;
  for (const [index, prompt] of prompts.entries()) {
    llm.engine.resetPrefixCache();
    const result = await llm.generate(prompt, { ...options, addSpecialTokens: false, seed: index }).result();
    texts.push(result.text);
    tokens += result.usage.completionTokens - 1;
    decodeMs += result.record.decodeMs;
    draftTokens += result.record.draftTokens;
    acceptedTokens += result.record.acceptedDraftTokens;
  }
  return { texts, tokensPerSecond: (tokens / decodeMs) * 1000, draftTokens, acceptedTokens };
}

/** Conversations of one kind that the embedded model was not trained on. */
function promptsLike(llm: LLM, task: "copying" | "extraction", isWanted: (kind: string) => boolean) {
  return (round: number): string[] => {
    const prompts: string[] = [];
    for (const { kind, messages } of cases({ task, split: "heldout", seed: `speculation-${round}` })) {
      if (isWanted(kind))
        prompts.push(llm.renderChat({ messages: messages.map((message) => ({ ...message })) }));
      if (prompts.length === numPrompts) break;
    }
    return prompts;
  };
}

function workloads(llm: LLM): Workload[] {
  const greedy = { temperature: 0, maxTokens: 400 };
  return [
    {
      name: "extraction of passages",
      promptsOf: promptsLike(llm, "copying", (kind) => kind === "copy"),
      options: greedy,
      atLeast: 1.8,
    },
    {
      name: "extraction of fields into JSON",
      promptsOf: promptsLike(llm, "extraction", () => true),
      options: greedy,
    },
    {
      // At this temperature the small model says anything: what has stood before says little of what follows.
      name: "free sampling",
      promptsOf: (round) =>
        Array.from({ length: numPrompts }, (_, index) => {
          const content = `Tell me the story number ${round * numPrompts + index}.`;
          return llm.renderChat({ messages: [{ role: "user", content }] });
        }),
      options: { temperature: 2.5, maxTokens: 160, ignoreEos: true },
      atLeast: 0.97,
    },
  ];
}

/** Speeds in one run, turn by turn, so that whatever else the machine does meets both. */
async function compare(plain: LLM, guessing: LLM, method: string, workload: Workload): Promise<BenchCase> {
  const ratios: number[] = [];
  let last: readonly [Pass, Pass] | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const prompts = workload.promptsOf(round);
    const first = round % 2 === 0 ? plain : guessing;
    const one = await pass(first, prompts, workload.options);
    const two = await pass(first === plain ? guessing : plain, prompts, workload.options);
    const [off, on] = first === plain ? [one, two] : [two, one];
    assert.deepEqual(on.texts, off.texts, `${method} changed an answer of ${workload.name}`);
    // The first round is for what is only slow once.
    if (round > 0) ratios.push(on.tokensPerSecond / off.tokensPerSecond);
    last = [off, on];
  }
  assert.ok(last !== undefined);
  const [off, on] = last;
  return {
    name: `${workload.name}, ${method}`,
    unit: "x off",
    octavo: median(ratios),
    ...(workload.atLeast !== undefined && { target: { atLeast: workload.atLeast } }),
    details: {
      ratios,
      offTokensPerSecond: off.tokensPerSecond,
      onTokensPerSecond: on.tokensPerSecond,
      draftTokens: on.draftTokens,
      acceptedTokens: on.acceptedTokens,
    },
  };
}

const model = process.argv[2] ?? embeddedModel;
const results: BenchCase[] = [];
for (const [method, speculativeConfig] of Object.entries(methods)) {
  await using plain = await LLM.load(model, { maxModelLen: 4096 });
  await using guessing = await LLM.load(model, { maxModelLen: 4096, speculativeConfig });
  for (const workload of workloads(plain)) results.push(await compare(plain, guessing, method, workload));
}
report("speculation", results);
