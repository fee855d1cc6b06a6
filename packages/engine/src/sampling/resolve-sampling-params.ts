import { OctavoError } from "@octavo/protocol/errors";
import type { GenerationDefaults } from "@octavo/artifacts/checkpoint/checkpoint";
import {
  booleanOr,
  checkTokenId,
  invalidParameter,
  type Maybe,
  numberOr,
  type NumberRule,
  stringList,
  tokenIdList,
} from "./parameter-checks.js";
import type { SamplingParams } from "./sampling-params.js";

/** Sampling parameters as a caller gives them: anything may be left out or null. */
export interface SamplingInput {
  readonly n?: Maybe<number>;
  readonly maxTokens?: Maybe<number>;
  readonly minTokens?: Maybe<number>;
  readonly temperature?: Maybe<number>;
  readonly topP?: Maybe<number>;
  readonly topK?: Maybe<number>;
  readonly minP?: Maybe<number>;
  readonly presencePenalty?: Maybe<number>;
  readonly frequencyPenalty?: Maybe<number>;
  readonly repetitionPenalty?: Maybe<number>;
  /** Bias by token id; the ids are strings in JSON. */
  readonly logitBias?: Maybe<ReadonlyMap<number, number> | Readonly<Record<string, number>>>;
  readonly allowedTokenIds?: Maybe<readonly number[]>;
  readonly badWords?: Maybe<readonly string[]>;
  readonly stop?: Maybe<string | readonly string[]>;
  readonly stopTokenIds?: Maybe<readonly number[]>;
  readonly includeStopStrInOutput?: Maybe<boolean>;
  readonly ignoreEos?: Maybe<boolean>;
  readonly seed?: Maybe<number | bigint>;
  readonly logprobs?: Maybe<number>;
  readonly promptLogprobs?: Maybe<number>;
  readonly logprobTokenIds?: Maybe<readonly number[]>;
  readonly skipSpecialTokens?: Maybe<boolean>;
}

/** What the parameters are checked against. */
export interface SamplingContext {
  /** The artifact's own defaults; OpenAI's apply where they are silent. */
  readonly defaults: GenerationDefaults;
  readonly vocabSize: number;
  readonly maxModelLen: number;
  /** Limits the default number of output tokens to what the context has room for. */
  readonly numPromptTokens: number;
  /** Alternatives per token at most; default 20, -1 is no limit. */
  readonly maxLogprobs?: number | undefined;
}

const rules = {
  n: {
    param: "n",
    expected: "an integer from 1 to 128",
    isInteger: true,
    accepts: (n) => n >= 1 && n <= 128,
  },
  maxTokens: {
    param: "max_tokens",
    expected: "an integer of at least 1",
    isInteger: true,
    accepts: (count) => count >= 1,
  },
  minTokens: {
    param: "min_tokens",
    expected: "an integer of at least 0",
    isInteger: true,
    accepts: (count) => count >= 0,
  },
  temperature: {
    param: "temperature",
    expected: "a finite number of at least 0",
    accepts: (value) => value >= 0,
  },
  topP: {
    param: "top_p",
    expected: "greater than 0 and at most 1",
    accepts: (value) => value > 0 && value <= 1,
  },
  topK: {
    param: "top_k",
    expected: "a positive integer, or 0 or -1 for no limit",
    isInteger: true,
    accepts: (k) => k >= -1,
  },
  minP: { param: "min_p", expected: "from 0 to 1", accepts: (value) => value >= 0 && value <= 1 },
  presencePenalty: {
    param: "presence_penalty",
    expected: "from -2 to 2",
    accepts: (value) => Math.abs(value) <= 2,
  },
  frequencyPenalty: {
    param: "frequency_penalty",
    expected: "from -2 to 2",
    accepts: (value) => Math.abs(value) <= 2,
  },
  repetitionPenalty: {
    param: "repetition_penalty",
    expected: "a finite number greater than 0",
    accepts: (value) => value > 0,
  },
} as const satisfies Record<string, NumberRule>;

/** Both are compiled into tables before the first step, at a cost per character. */
const maxStops = { maxItems: 64, maxLength: 16_384 };
const maxTokenIds = 1024;
const maxBadWords = { maxItems: 1024, maxLength: 16_384 };
/** Lower temperatures count as 0; from here on they are raised to `minTemperature`, as in vLLM, against overflow. */
const greedyTemperature = 1e-5;
const minTemperature = 0.01;

/**
 * Checks a request's sampling parameters under vLLM's rules and fills in the artifact's and OpenAI's defaults. Throws
 * `invalid_request` naming the parameter at fault. Unlike vLLM, and like OpenAI, n > 1 is allowed with temperature 0.
 */
export function resolveSamplingParams(input: SamplingInput, context: SamplingContext): SamplingParams {
  const { defaults, vocabSize } = context;
  const given = numberOr(input.temperature, defaults.temperature ?? 1, rules.temperature);
  const isGreedy = given < greedyTemperature;
  const temperature = isGreedy ? 0 : Math.max(given, minTemperature);
  const topP = numberOr(input.topP, defaults.topP ?? 1, rules.topP);
  const topK = numberOr(input.topK, defaults.topK ?? 0, rules.topK);
  const minP = numberOr(input.minP, defaults.minP ?? 0, rules.minP);
  const badWords = stringList(input.badWords, "bad_words", maxBadWords);
  const allowedTokenIds = tokenIdList(input.allowedTokenIds, "allowed_token_ids", vocabSize, vocabSize);
  if (allowedTokenIds?.length === 0) {
    throw new OctavoError(
      "invalid_request",
      "allowed_token_ids must not be empty: nothing could be generated.",
      {
        param: "allowed_token_ids",
      },
    );
  }
  return {
    n: numberOr(input.n, 1, rules.n),
    ...tokenBounds(input, context),
    temperature,
    topP: isGreedy ? 1 : topP,
    topK: isGreedy || topK >= vocabSize ? 0 : Math.max(0, topK),
    minP: isGreedy ? 0 : minP,
    presencePenalty: numberOr(input.presencePenalty, 0, rules.presencePenalty),
    frequencyPenalty: numberOr(input.frequencyPenalty, 0, rules.frequencyPenalty),
    repetitionPenalty: numberOr(
      input.repetitionPenalty,
      defaults.repetitionPenalty ?? 1,
      rules.repetitionPenalty,
    ),
    logitBias: logitBias(input.logitBias, vocabSize),
    allowedTokenIds,
    badWords,
    stop: stringList(input.stop, "stop", maxStops),
    stopTokenIds: tokenIdList(input.stopTokenIds, "stop_token_ids", vocabSize, maxTokenIds) ?? [],
    includeStopStrInOutput: booleanOr(input.includeStopStrInOutput, false, "include_stop_str_in_output"),
    ignoreEos: booleanOr(input.ignoreEos, false, "ignore_eos"),
    seed: seed(input.seed),
    logprobs: numLogprobs(input.logprobs, "logprobs", context),
    promptLogprobs: numLogprobs(input.promptLogprobs, "prompt_logprobs", context),
    logprobTokenIds: tokenIdList(input.logprobTokenIds, "logprob_token_ids", vocabSize, 128),
    skipSpecialTokens: booleanOr(input.skipSpecialTokens, true, "skip_special_tokens"),
  };
}

function tokenBounds(
  input: SamplingInput,
  context: SamplingContext,
): Pick<SamplingParams, "maxTokens" | "minTokens"> {
  const room = context.maxModelLen - context.numPromptTokens;
  const { maxNewTokens } = context.defaults;
  const fallback = maxNewTokens === undefined || room < 1 ? undefined : Math.min(maxNewTokens, room);
  const maxTokens = numberOr(input.maxTokens, fallback, rules.maxTokens);
  const minTokens = numberOr(input.minTokens, 0, rules.minTokens);
  const most = maxTokens ?? Math.max(room, 0);
  if (minTokens > most && minTokens > 0) {
    const bound = maxTokens === undefined ? "what the context has room for" : "max_tokens";
    throw invalidParameter("min_tokens", `at most ${bound} (${most})`, minTokens);
  }
  return { maxTokens, minTokens };
}

function logitBias(
  given: SamplingInput["logitBias"],
  vocabSize: number,
): ReadonlyMap<number, number> | undefined {
  if (given === null || given === undefined) return undefined;
  if (typeof given !== "object" || Array.isArray(given))
    throw invalidParameter("logit_bias", "a map of token ids to numbers", given);
  const bias = new Map<number, number>();
  const entries: Iterable<[string | number, number]> = given instanceof Map ? given : Object.entries(given);
  for (const [key, value] of entries) {
    const param = `logit_bias[${String(key).slice(0, 40)}]`;
    const token = typeof key === "number" || /^\d{1,10}$/.test(key) ? Number(key) : Number.NaN;
    checkTokenId(token, param, vocabSize);
    if (typeof value !== "number" || !(Math.abs(value) <= 100))
      throw invalidParameter(param, "from -100 to 100", value);
    bias.set(token, value);
  }
  return bias.size === 0 ? undefined : bias;
}

function numLogprobs(given: Maybe<number>, param: string, context: SamplingContext): number | undefined {
  const { vocabSize, maxLogprobs = 20 } = context;
  const limit = maxLogprobs === -1 ? vocabSize : maxLogprobs;
  const expected =
    limit >= vocabSize ? `from 0 to ${vocabSize}, or -1 for the whole vocabulary` : `from 0 to ${limit}`;
  const accepts = (count: number): boolean =>
    count === -1 ? limit >= vocabSize : count >= 0 && count <= limit;
  const count = numberOr(given, undefined, {
    param,
    expected: `an integer ${expected}`,
    isInteger: true,
    accepts,
  });
  return count === undefined ? undefined : Math.min(count, vocabSize);
}

function seed(given: Maybe<number | bigint>): bigint | undefined {
  if (given === null || given === undefined) return undefined;
  const value = typeof given === "number" && Number.isInteger(given) ? BigInt(given) : given;
  if (typeof value !== "bigint" || value < -(2n ** 63n) || value >= 2n ** 64n) {
    throw invalidParameter("seed", "an integer of 64 bits", given);
  }
  return BigInt.asUintN(64, value);
}
