import type {
  FinishReason,
  GenerationEvent,
  GenerationRequest,
  ServingRecord,
  TokenLogprob,
  Usage,
} from "../../api.js";
import { createEngine } from "../../create-engine.js";
import type { EngineOptions, RunningEngine } from "../../engine-options.js";
import type { SamplingParams } from "../../sampling/sampling-params.js";
import { FakeBackend, type FakeBackendOptions } from "./fake-backend.js";
import { FakeTokenizer } from "@octavo/text/testing/fake-tokenizer";

const vocabSize = 64;
/** Token id that ends a sequence in the fixtures. */
export const eosToken = vocabSize - 1;

/** Tokens 0..62 are the letters, then the first digits; 63 is EOS. */
export const letterTokenizer = new FakeTokenizer({
  pieces: Array.from({ length: vocabSize }, (_, id) =>
    id === eosToken ? "</s>" : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "[id]!,
  ),
  specialTokenIds: [eosToken],
  eosTokenId: eosToken,
});

export interface FixtureOptions extends Partial<Omit<EngineOptions, "backend" | "program" | "kv">> {
  readonly backend?: Omit<FakeBackendOptions, "vocabSize">;
}

/** An engine over a fake backend, with small sizes that a test may override. */
export function createFakeEngine(options: FixtureOptions = {}): {
  engine: RunningEngine;
  backend: FakeBackend;
} {
  const { backend: backendOptions, ...engineOptions } = options;
  const size = engineOptions.vocabSize ?? engineOptions.tokenizer?.vocabSize ?? vocabSize;
  const backend = new FakeBackend({ vocabSize: size, hiddenSize: 8, ...backendOptions });
  const engine = createEngine({
    backend,
    program: backend.program,
    tokenizer: letterTokenizer,
    vocabSize: size,
    hiddenSize: 8,
    eosTokenIds: [eosToken],
    kv: { layers: [{ numKvHeads: 1, headDim: 8 }], dtype: "f32" },
    numBlocks: 64,
    blockSize: 4,
    maxModelLen: 128,
    maxNumSeqs: 32,
    maxNumBatchedTokens: 64,
    ...engineOptions,
  });
  return { engine, backend };
}

export const plainParams: SamplingParams = {
  n: 1,
  maxTokens: 16,
  minTokens: 0,
  temperature: 0,
  topP: 1,
  topK: 0,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  repetitionPenalty: 1,
  logitBias: undefined,
  allowedTokenIds: undefined,
  badWords: [],
  stop: [],
  stopTokenIds: [],
  includeStopStrInOutput: false,
  ignoreEos: true,
  seed: 1n,
  logprobs: undefined,
  promptLogprobs: undefined,
  logprobTokenIds: undefined,
  skipSpecialTokens: true,
};

let numRequests = 0;

export function generationRequest(
  promptTokens: readonly number[],
  params: Partial<SamplingParams> = {},
  more: Partial<GenerationRequest> = {},
): GenerationRequest {
  numRequests += 1;
  return {
    kind: "generate",
    requestId: `request-${numRequests}`,
    promptTokens: Int32Array.from(promptTokens),
    params: { ...plainParams, ...params },
    ...more,
  };
}

/** The collected output of one sequence. */
export interface CollectedSequence {
  text: string;
  readonly tokens: number[];
  readonly logprobs: TokenLogprob[];
  finishReason: FinishReason | undefined;
  stopReason: string | number | undefined;
}

export interface Collected {
  readonly sequences: CollectedSequence[];
  promptLogprobs: readonly (TokenLogprob | undefined)[] | undefined;
  usage: Usage | undefined;
  record: ServingRecord | undefined;
  logitsDigests: readonly (readonly string[])[] | undefined;
  readonly events: GenerationEvent[];
}

/** Reads a request's events to the end. */
export async function collect(events: AsyncIterable<GenerationEvent>): Promise<Collected> {
  const collected: Collected = {
    sequences: [],
    promptLogprobs: undefined,
    usage: undefined,
    record: undefined,
    logitsDigests: undefined,
    events: [],
  };
  for await (const event of events) {
    collected.events.push(event);
    if (event.kind === "prompt") collected.promptLogprobs = event.promptLogprobs;
    else if (event.kind === "done") {
      collected.usage = event.usage;
      collected.record = event.record;
      collected.logitsDigests = event.logitsDigests;
    } else {
      for (const delta of event.deltas) {
        const sequence = (collected.sequences[delta.index] ??= {
          text: "",
          tokens: [],
          logprobs: [],
          finishReason: undefined,
          stopReason: undefined,
        });
        sequence.text += delta.text;
        sequence.tokens.push(...delta.tokens);
        sequence.logprobs.push(...(delta.logprobs ?? []));
        sequence.finishReason = delta.finishReason;
        sequence.stopReason = delta.stopReason;
      }
    }
  }
  return collected;
}
