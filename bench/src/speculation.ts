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
  ngram: { method: "ngram", numSpeculativeTokens: 8, promptLookupMin: 2, promptLookupMax: 4 },
  suffix: { method: "suffix" },
};

interface Workload {
  readonly name: string;
  readonly prompts: readonly string[];
  readonly options: GenerateOptions;
  readonly atLeast: number;
}

interface Pass {
  readonly texts: readonly string[];
  /** Between first and last tokens. */
  readonly tokensPerSecond: number;
  readonly draftTokens: number;
  readonly acceptedTokens: number;
}

/** One prompt after the other, nothing of the one before in the prefix cache. */
async function pass(llm: LLM, { prompts, options }: Workload): Promise<Pass> {
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

function extraction(llm: LLM): Workload {
  const stream = cases({ task: "extraction", split: "heldout", seed: "speculation" });
  const prompts = Array.from({ length: numPrompts }, () => {
    const { messages } = stream.next().value;
    return llm.renderChat({ messages: messages.map((message) => ({ ...message })) });
  });
  return { name: "extraction", prompts, options: { temperature: 0, maxTokens: 400 }, atLeast: 1.8 };
}

/** At this temperature the small model says anything: what has stood before says nothing of what follows. */
function rambling(llm: LLM): Workload {
  const prompts = Array.from({ length: numPrompts }, (_, index) =>
    llm.renderChat({ messages: [{ role: "user", content: `Tell me the story number ${index}.` }] }),
  );
  const options = { temperature: 1.5, maxTokens: 160, ignoreEos: true };
  return { name: "free sampling", prompts, options, atLeast: 0.97 };
}

/** Speeds in one run, turn by turn, so that whatever else the machine does meets both. */
async function compare(plain: LLM, guessing: LLM, method: string, workload: Workload): Promise<BenchCase> {
  const ratios: number[] = [];
  let last: readonly [Pass, Pass] | undefined;
  for (let round = 0; round < rounds; round += 1) {
    const first = round % 2 === 0 ? plain : guessing;
    const one = await pass(first, workload);
    const two = await pass(first === plain ? guessing : plain, workload);
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
    target: { atLeast: workload.atLeast },
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
  for (const workload of [extraction(plain), rambling(plain)])
    results.push(await compare(plain, guessing, method, workload));
}
report("speculation", results);
