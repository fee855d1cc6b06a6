import type { GenerationDefaults, SamplingParams } from "@octavo/engine";
import { OctavoError, type SamplingFields } from "@octavo/protocol";

export interface SamplingContext {
  readonly defaults: GenerationDefaults;
  readonly vocabSize: number;
  /** -1 allows the whole vocabulary. */
  readonly maxLogprobs: number;
  readonly maxTokens: number | undefined;
  readonly logprobs: number | undefined;
  /** The field that `logprobs` came from, for messages. */
  readonly logprobsField: "logprobs" | "top_logprobs";
  readonly promptLogprobs: number | undefined;
}

/**
 * Wire fields as engine parameters. What a request leaves out comes from generation_config.json, then from
 * OpenAI's defaults. Throws `invalid_request` for values that do not fit the model or each other.
 */
export function toSamplingParams(fields: SamplingFields, context: SamplingContext): SamplingParams {
  const { defaults, vocabSize } = context;
  const minTokens = fields.min_tokens ?? 0;
  if (context.maxTokens !== undefined && minTokens > context.maxTokens) {
    throw invalid("min_tokens", `${minTokens} is more than max_tokens, ${context.maxTokens}`);
  }
  checkLogprobs(context.logprobsField, context.logprobs, context.maxLogprobs);
  checkLogprobs("prompt_logprobs", context.promptLogprobs, context.maxLogprobs);
  checkTokenIds("stop_token_ids", fields.stop_token_ids, vocabSize);
  checkTokenIds("allowed_token_ids", fields.allowed_token_ids, vocabSize);
  checkTokenIds("logprob_token_ids", fields.logprob_token_ids, vocabSize);
  const topK = fields.top_k ?? defaults.topK ?? 0;
  const logprobTokenIds = fields.logprob_token_ids ?? undefined;
  return {
    n: fields.n ?? 1,
    maxTokens: context.maxTokens,
    minTokens,
    temperature: fields.temperature ?? defaults.temperature ?? 1,
    topP: fields.top_p ?? defaults.topP ?? 1,
    topK: Math.max(0, topK),
    minP: fields.min_p ?? defaults.minP ?? 0,
    presencePenalty: fields.presence_penalty ?? 0,
    frequencyPenalty: fields.frequency_penalty ?? 0,
    repetitionPenalty: fields.repetition_penalty ?? defaults.repetitionPenalty ?? 1,
    logitBias: toLogitBias(fields.logit_bias, vocabSize),
    allowedTokenIds: fields.allowed_token_ids ?? undefined,
    badWords: fields.bad_words ?? [],
    stop: typeof fields.stop === "string" ? [fields.stop] : (fields.stop ?? []),
    stopTokenIds: fields.stop_token_ids ?? [],
    includeStopStrInOutput: fields.include_stop_str_in_output ?? false,
    ignoreEos: fields.ignore_eos ?? false,
    seed: fields.seed === undefined || fields.seed === null ? undefined : BigInt(fields.seed),
    logprobs: context.logprobs ?? (logprobTokenIds === undefined ? undefined : 0),
    promptLogprobs: context.promptLogprobs,
    logprobTokenIds,
    skipSpecialTokens: fields.skip_special_tokens ?? true,
  };
}

function toLogitBias(
  bias: SamplingFields["logit_bias"],
  vocabSize: number,
): ReadonlyMap<number, number> | undefined {
  if (bias === undefined || bias === null) return undefined;
  const entries = Object.entries(bias).map(([token, value]) => [Number(token), value] as const);
  checkTokenIds(
    "logit_bias",
    entries.map(([token]) => token),
    vocabSize,
  );
  return entries.length === 0 ? undefined : new Map(entries);
}

function checkTokenIds(param: string, ids: readonly number[] | null | undefined, vocabSize: number): void {
  const bad = ids?.find((id) => id >= vocabSize);
  if (bad !== undefined)
    throw invalid(param, `token id ${bad} is outside the vocabulary of ${vocabSize} tokens`);
}

function checkLogprobs(param: string, count: number | undefined, maxLogprobs: number): void {
  if (count === undefined || maxLogprobs === -1) return;
  if (count === -1)
    throw invalid(param, "-1 (the whole vocabulary) needs a server started with --max-logprobs -1");
  if (count > maxLogprobs)
    throw invalid(param, `at most ${maxLogprobs} are allowed by this server, got ${count}`);
}

function invalid(param: string, message: string): OctavoError {
  return new OctavoError("invalid_request", `${param}: ${message}`, { param });
}
