import assert from "node:assert/strict";
import type { GenerateOptions, LLM } from "@octavo/engine";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";

export interface DraftedWorkload {
  readonly name: string;
  /** Other ones in each round: what is remembered of earlier answers must not be these answers. */
  readonly promptsOf: (llm: LLM, round: number) => readonly (string | Int32Array)[];
  readonly options: GenerateOptions;
  readonly rounds: number;
  /** Turns of each model in a round, at most. */
  readonly turns?: number;
  readonly atLeast?: number | undefined;
}

/** What one model did with a round's prompts. */
class Pass {
  readonly answers: (readonly number[])[] = [];
  numDrafts = 0;
  draftTokens = 0;
  acceptedTokens = 0;
  #tokens = 0;
  #decodeMs = 0;
  #cpuMs = 0;

  /** Of a stream, between its first and its last token. */
  get tokensPerSecond(): number {
    return (this.#tokens / this.#decodeMs) * 1000;
  }

  /** Prompts read as well. */
  get tokensPerCpuSecond(): number {
    return (this.#tokens / this.#cpuMs) * 1000;
  }

  note(drafted: number, accepted: number): void {
    this.numDrafts += 1;
    this.draftTokens += drafted;
    this.acceptedTokens += accepted;
  }

  /** All at once; nothing of an earlier prompt is in the prefix cache. */
  async answer(
    llm: LLM,
    prompts: readonly (string | Int32Array)[],
    options: GenerateOptions,
    seed: number,
  ): Promise<void> {
    llm.engine.resetPrefixCache();
    using _ = llm.engine.observe({ onDraft: (drafted, accepted) => this.note(drafted, accepted) });
    const before = process.cpuUsage();
    const results = await Promise.all(
      prompts.map((prompt, index) =>
        llm.generate(prompt, { ...options, seed: seed + index, addSpecialTokens: false }).result(),
      ),
    );
    const { user, system } = process.cpuUsage(before);
    this.#cpuMs += (user + system) / 1000;
    for (const { sequences, usage, record } of results) {
      this.answers.push(sequences[0]?.tokens ?? []);
      this.#tokens += usage.completionTokens - 1;
      this.#decodeMs += record.decodeMs;
    }
  }
}

/** Speeds in one run, so many prompts at a time in turn, so that whatever else the machine does meets both. */
export async function comparePasses(
  plain: LLM,
  drafting: LLM,
  method: string,
  workload: DraftedWorkload,
  streams = 1,
): Promise<BenchCase> {
  const ratios: number[] = [];
  const cpuRatios: number[] = [];
  let last: readonly [Pass, Pass] | undefined;
  for (let round = 0; round < workload.rounds; round += 1) {
    const [off, on] = [new Pass(), new Pass()];
    const prompts = workload.promptsOf(plain, round);
    for (
      let at = 0;
      at + streams <= prompts.length && at < (workload.turns ?? Infinity) * streams;
      at += streams
    ) {
      const some = prompts.slice(at, at + streams);
      const turns = [off, on].map((pass, index) => {
        return () => pass.answer(index === 0 ? plain : drafting, some, workload.options, at);
      });
      for (const turn of (at / streams) % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    assert.deepEqual(on.answers, off.answers, `${method} changed an answer of ${workload.name}`);
    // The first round is for what is only slow once.
    if (round > 0) {
      ratios.push(on.tokensPerSecond / off.tokensPerSecond);
      cpuRatios.push(on.tokensPerCpuSecond / off.tokensPerCpuSecond);
    }
    last = [off, on];
  }
  assert.ok(last !== undefined);
  const [off, on] = last;
  const { numDrafts, draftTokens, acceptedTokens } = on;
  return {
    name: `${workload.name}, ${method}${streams === 1 ? "" : `, ${streams} streams`}`,
    unit: "x off",
    octavo: median(ratios),
    ...(workload.atLeast !== undefined && { target: { atLeast: workload.atLeast } }),
    details: {
      ratios,
      ratioPerCpuSecond: median(cpuRatios),
      offTokensPerSecond: streams * off.tokensPerSecond,
      onTokensPerSecond: streams * on.tokensPerSecond,
      draftTokens,
      acceptedTokens,
      // As vLLM logs them.
      draftAcceptanceRate: draftTokens === 0 ? undefined : acceptedTokens / draftTokens,
      meanAcceptanceLength: numDrafts === 0 ? undefined : 1 + acceptedTokens / numDrafts,
    },
  };
}
