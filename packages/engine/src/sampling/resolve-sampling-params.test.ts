import assert from "node:assert/strict";
import { test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import {
  resolveSamplingParams,
  type SamplingContext,
  type SamplingInput,
} from "./resolve-sampling-params.js";

const context: SamplingContext = { defaults: {}, vocabSize: 1000, maxModelLen: 512, numPromptTokens: 12 };

function refusal(input: unknown, more: Partial<SamplingContext> = {}): OctavoError {
  try {
    resolveSamplingParams(input as SamplingInput, { ...context, ...more });
  } catch (thrown) {
    assert(thrown instanceof OctavoError);
    assert.equal(thrown.code, "invalid_request");
    assert(thrown.message.length < 300, "the message is bounded");
    return thrown;
  }
  throw new assert.AssertionError({ message: `accepted ${JSON.stringify(input)?.slice(0, 100)}` });
}

test("fills in OpenAI's defaults under the artifact's", () => {
  const plain = resolveSamplingParams({}, context);
  assert.equal(plain.temperature, 1);
  assert.equal(plain.topP, 1);
  assert.equal(plain.topK, 0);
  assert.equal(plain.n, 1);
  assert.equal(plain.maxTokens, undefined);
  assert.equal(plain.seed, undefined);
  assert.equal(plain.skipSpecialTokens, true);
  const defaults = {
    temperature: 0.6,
    topP: 0.95,
    topK: 20,
    minP: 0.1,
    repetitionPenalty: 1.1,
    maxNewTokens: 100,
  };
  const tuned = resolveSamplingParams({ topP: 0.5, topK: null }, { ...context, defaults });
  assert.deepEqual(
    [tuned.temperature, tuned.topP, tuned.topK, tuned.minP, tuned.repetitionPenalty, tuned.maxTokens],
    [0.6, 0.5, 20, 0.1, 1.1, 100],
  );
});

test("cuts a default length to the context's room, but leaves a given one for the engine to refuse", () => {
  const defaults = { maxNewTokens: 2048 };
  assert.equal(resolveSamplingParams({}, { ...context, defaults }).maxTokens, 500);
  assert.equal(resolveSamplingParams({ maxTokens: 2048 }, { ...context, defaults }).maxTokens, 2048);
});

const refused: readonly (readonly [string, unknown])[] = [
  ["temperature", { temperature: Number.NaN }],
  ["temperature", { temperature: Number.POSITIVE_INFINITY }],
  ["temperature", { temperature: -0.1 }],
  ["temperature", { temperature: "1" }],
  ["top_p", { topP: 0 }],
  ["top_p", { topP: 1.0001 }],
  ["top_p", { topP: Number.NaN }],
  ["top_k", { topK: -2 }],
  ["top_k", { topK: 1.5 }],
  ["min_p", { minP: -0.01 }],
  ["min_p", { minP: 1.01 }],
  ["presence_penalty", { presencePenalty: 2.01 }],
  ["frequency_penalty", { frequencyPenalty: -2.01 }],
  ["repetition_penalty", { repetitionPenalty: 0 }],
  ["repetition_penalty", { repetitionPenalty: Number.POSITIVE_INFINITY }],
  ["n", { n: 0 }],
  ["n", { n: -1 }],
  ["n", { n: 129 }],
  ["n", { n: 1e300 }],
  ["max_tokens", { maxTokens: 0 }],
  ["max_tokens", { maxTokens: 1.5 }],
  ["min_tokens", { minTokens: -1 }],
  ["min_tokens", { minTokens: 6, maxTokens: 5 }],
  ["min_tokens", { minTokens: 501 }],
  ["stop", { stop: Array.from({ length: 10_000 }, () => "x") }],
  ["stop", { stop: 7 }],
  ["stop", { stop: "" }],
  ["stop[1]", { stop: ["a", ""] }],
  ["stop[0]", { stop: ["x".repeat(5000)] }],
  ["stop[0]", { stop: ["\udc00"] }],
  ["stop_token_ids[0]", { stopTokenIds: [1000] }],
  ["stop_token_ids[0]", { stopTokenIds: [-1] }],
  ["logprobs", { logprobs: 21 }],
  ["logprobs", { logprobs: -1 }],
  ["prompt_logprobs", { promptLogprobs: -2 }],
  ["logprob_token_ids[0]", { logprobTokenIds: [5000] }],
  ["logit_bias[1000]", { logitBias: { 1000: 1 } }],
  ["logit_bias[one]", { logitBias: { one: 1 } }],
  ["logit_bias[5]", { logitBias: { 5: 101 } }],
  ["logit_bias[5]", { logitBias: { 5: Number.NaN } }],
  ["logit_bias", { logitBias: [1] }],
  ["allowed_token_ids", { allowedTokenIds: [] }],
  ["allowed_token_ids[1]", { allowedTokenIds: [1, 1001] }],
  ["bad_words[0]", { badWords: [""] }],
  ["bad_words", { badWords: Array.from({ length: 10_000 }, () => "x") }],
  ["bad_words", { badWords: Array.from({ length: 17 }, () => "x".repeat(1024)) }],
  ["stop", { stop: Array.from({ length: 17 }, () => "x".repeat(1024)) }],
  ["seed", { seed: 1.5 }],
  ["seed", { seed: 2n ** 64n }],
  ["ignore_eos", { ignoreEos: "yes" }],
];

for (const [param, input] of refused) {
  test(`refuses and names ${param}: ${Object.keys(input as object).join(", ")}`, () => {
    const error = refusal(input);
    assert.equal(error.param, param);
    assert(error.message.startsWith(param.replace(/\[.*/, "")), error.message);
  });
}

test("takes the ends of every range", () => {
  const params = resolveSamplingParams(
    {
      temperature: 0,
      topP: 1,
      topK: -1,
      minP: 1,
      presencePenalty: -2,
      frequencyPenalty: 2,
      repetitionPenalty: 0.01,
      n: 128,
      maxTokens: 5,
      minTokens: 5,
      stop: "END",
      logprobs: 20,
      logitBias: { "3": -100, "4": 100 },
      allowedTokenIds: [0, 999],
      seed: -1,
    },
    context,
  );
  assert.equal(params.topK, 0);
  assert.deepEqual(params.stop, ["END"]);
  assert.deepEqual(
    params.logitBias,
    new Map([
      [3, -100],
      [4, 100],
    ]),
  );
  assert.equal(params.seed, 2n ** 64n - 1n);
});

test("greedy ignores the truncating filters, and tiny temperatures cannot overflow", () => {
  const greedy = resolveSamplingParams({ temperature: 1e-6, topP: 0.1, topK: 3, minP: 0.5 }, context);
  assert.deepEqual([greedy.temperature, greedy.topP, greedy.topK, greedy.minP], [0, 1, 0, 0]);
  assert.equal(resolveSamplingParams({ temperature: 0.001 }, context).temperature, 0.01);
});

test("logprobs of the whole vocabulary need an engine that allows them", () => {
  assert.equal(resolveSamplingParams({ logprobs: -1 }, { ...context, maxLogprobs: -1 }).logprobs, -1);
  assert.equal(
    resolveSamplingParams({ promptLogprobs: 1000 }, { ...context, maxLogprobs: -1 }).promptLogprobs,
    1000,
  );
  assert.match(refusal({ logprobs: 1001 }, { maxLogprobs: -1 }).message, /-1 for the whole vocabulary/);
});
