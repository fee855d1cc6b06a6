// Decode speed at batch 1 with speculation against the same without: extraction, where drafts come true, and free sampling,
// where they miss. Answers with and without must be the same tokens, or nothing is reported.
import assert from "node:assert/strict";
import { type GenerateOptions, LLM, type SpeculativeConfig } from "@octavo/engine";
import { cases } from "@octavo/octavo-mini";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
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

/** What one model did with a round's prompts. */
class Pass {
  readonly texts: string[] = [];
  draftTokens = 0;
  acceptedTokens = 0;
  #tokens = 0;
  #decodeMs = 0;

  /** Between first and last tokens. */
  get tokensPerSecond(): number {
    return (this.#tokens / this.#decodeMs) * 1000;
  }

  /** Nothing of an earlier prompt is in the prefix cache. */
  async answer(llm: LLM, prompt: string, options: GenerateOptions): Promise<void> {
    llm.engine.resetPrefixCache();
    const result = await llm.generate(prompt, { ...options, addSpecialTokens: false }).result();
    this.texts.push(result.text);
    this.#tokens += result.usage.completionTokens - 1;
    this.#decodeMs += result.record.decodeMs;
    this.draftTokens += result.record.draftTokens;
    this.acceptedTokens += result.record.acceptedDraftTokens;
  }
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

/** At this temperature a small model says anything: what has stood before says little of what follows. */
function freeSampling(name: string, llm: LLM, prompts: number, maxTokens: number): Workload {
  return {
    name,
    promptsOf: (round) =>
      Array.from({ length: prompts }, (_, index) => {
        const content = `Tell me the story number ${round * prompts + index}.`;
        return llm.renderChat({ messages: [{ role: "user", content }] });
      }),
    options: { temperature: 2.5, maxTokens, ignoreEos: true },
    atLeast: 0.97,
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
    freeSampling("free sampling", llm, numPrompts, 160),
  ];
}

/** Speeds in one run, prompt by prompt in turn, so that whatever else the machine does meets both. */
async function compare(plain: LLM, drafting: LLM, method: string, workload: Workload): Promise<BenchCase> {
  const ratios: number[] = [];
  let last: readonly [Pass, Pass] | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const [off, on] = [new Pass(), new Pass()];
    for (const [index, prompt] of workload.promptsOf(round).entries()) {
      const options = { ...workload.options, seed: index };
      const turns = [() => off.answer(plain, prompt, options), () => on.answer(drafting, prompt, options)];
      for (const turn of index % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
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

const results: BenchCase[] = [];
for (const [method, speculativeConfig] of Object.entries(methods)) {
  {
    await using plain = await LLM.load(embeddedModel, { maxModelLen: 4096 });
    await using drafting = await LLM.load(embeddedModel, { maxModelLen: 4096, speculativeConfig });
    for (const workload of workloads(plain)) results.push(await compare(plain, drafting, method, workload));
  }
  // A step of the embedded model takes so little that what is done between two steps weighs more than it ever does elsewhere.
  const { path } = modelFile(defaultModelFolder(), "qwen2.5-0.5b", "q4_0");
  await using plain = await LLM.load(path, { maxModelLen: 1024 });
  await using drafting = await LLM.load(path, { maxModelLen: 1024, speculativeConfig });
  await Promise.all([plain.packed, drafting.packed]);
  const workload = freeSampling("free sampling, Qwen2.5-0.5B Q4_0 with random weights", plain, 4, 100);
  results.push(await compare(plain, drafting, method, workload));
}
report("speculation", results);
