import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { fixtureImage } from "@octavo/artifacts/testing/model-fixtures";
import type { GenerationRequest, TokenLogprob } from "../../api.js";
import { LLM } from "../../llm/llm.js";
import type { LoadOptions } from "../../llm/load-options.js";
import { resolveSamplingParams } from "../../sampling/resolve-sampling-params.js";

/** A prompt of a fixture, with the names of its images. */
interface ImagePrompt {
  readonly prompt: readonly number[];
  readonly images: readonly string[];
}

export interface ImageAnswer {
  readonly tokens: readonly number[];
  readonly digests: readonly string[];
  readonly promptLogprobs: readonly (TokenLogprob | undefined)[];
  readonly cachedTokens: number;
}

const maxModelLen = 160;

/** A model of `fixtures/images`, or in a folder of its own, with blocks of four tokens and room for few. */
export const loadImageModel = (model: string, options: LoadOptions): Promise<LLM> =>
  LLM.load(isAbsolute(model) ? model : fixtureImage(model), {
    kvCacheMemoryBytes: 1 << 21,
    maxModelLen,
    blockSize: 4,
    numThreads: 2,
    maxNumSeqs: 4,
    ...options,
  });

/** Eight greedy tokens after a prompt, with digests of their logits. */
export async function imageRequest(
  llm: LLM,
  { prompt, images }: ImagePrompt,
  more: Partial<GenerationRequest> = {},
): Promise<GenerationRequest> {
  const promptTokens = Int32Array.from(prompt);
  const bytes = images.map((name) => readFileSync(fixtureImage(name)));
  const context = {
    defaults: {},
    vocabSize: llm.config.vocabSize,
    maxModelLen,
    numPromptTokens: prompt.length,
  };
  return {
    kind: "generate",
    requestId: randomUUID(),
    promptTokens,
    images: await llm.images?.place(promptTokens, bytes),
    params: resolveSamplingParams({ temperature: 0, maxTokens: 8, ignoreEos: true, logprobs: 0 }, context),
    wantLogitsDigests: true,
    ...more,
  };
}

export async function runImageRequest(llm: LLM, request: GenerationRequest): Promise<ImageAnswer> {
  const tokens: number[] = [];
  let digests: readonly string[] = [];
  let promptLogprobs: ImageAnswer["promptLogprobs"] = [];
  let cachedTokens = 0;
  for await (const event of llm.engine.generate(request)) {
    if (event.kind === "delta") for (const delta of event.deltas) tokens.push(...delta.tokens);
    if (event.kind === "prompt") ({ promptLogprobs } = event);
    if (event.kind !== "done") continue;
    digests = event.logitsDigests?.[0] ?? [];
    ({ cachedTokens } = event.usage);
  }
  assert.equal(digests.length, 8);
  return { tokens, digests, promptLogprobs, cachedTokens };
}
