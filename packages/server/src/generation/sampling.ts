import { resolveSamplingParams, type GenerationDefaults, type SamplingParams } from "@octavo/engine";
import type { SamplingFields } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";

export interface WireSamplingContext {
  readonly defaults: GenerationDefaults;
  readonly vocabSize: number;
  readonly maxModelLen: number;
  readonly numPromptTokens: number;
  /** -1 allows the whole vocabulary. */
  readonly maxLogprobs: number;
  /** Already checked against the context's length. */
  readonly maxTokens: number | undefined;
  readonly logprobs: number | undefined;
  /** The field that `logprobs` came from, for messages. */
  readonly logprobsField: "logprobs" | "top_logprobs";
  readonly promptLogprobs: number | undefined;
}

/**
 * Translates wire fields into engine parameters. Defaults come from generation_config.json, then from OpenAI. Throws `invalid_request` for values that do not fit the model or each other.
 */
export function toSamplingParams(fields: SamplingFields, context: WireSamplingContext): SamplingParams {
  checkLogprobs(context.logprobsField, context.logprobs, context.maxLogprobs);
  checkLogprobs("prompt_logprobs", context.promptLogprobs, context.maxLogprobs);
  const params = resolveSamplingParams(
    {
      n: fields.n,
      maxTokens: context.maxTokens,
      minTokens: fields.min_tokens,
      temperature: fields.temperature,
      topP: fields.top_p,
      topK: fields.top_k,
      minP: fields.min_p,
      presencePenalty: fields.presence_penalty,
      frequencyPenalty: fields.frequency_penalty,
      repetitionPenalty: fields.repetition_penalty,
      logitBias: fields.logit_bias,
      allowedTokenIds: fields.allowed_token_ids,
      badWords: fields.bad_words,
      stop: fields.stop,
      stopTokenIds: fields.stop_token_ids,
      includeStopStrInOutput: fields.include_stop_str_in_output,
      ignoreEos: fields.ignore_eos,
      seed: fields.seed,
      logprobs: context.logprobs ?? (fields.logprob_token_ids ? 0 : undefined),
      promptLogprobs: context.promptLogprobs,
      logprobTokenIds: fields.logprob_token_ids,
      skipSpecialTokens: fields.skip_special_tokens,
    },
    context,
  );
  checkVolume(params, context);
  return params;
}

/** Most logprobs in one prompt's answer, alternatives included: they are held in memory until it is sent. */
const maxLogprobEntries = 2 ** 24;

function checkVolume(
  { n, maxTokens, logprobs, promptLogprobs }: SamplingParams,
  { numPromptTokens, maxModelLen, vocabSize }: WireSamplingContext,
): void {
  const perToken = (count: number | undefined): number =>
    count === undefined ? 0 : (count === -1 ? vocabSize : count) + 1;
  const outputTokens = n * (maxTokens ?? maxModelLen - numPromptTokens);
  const entries = outputTokens * perToken(logprobs) + numPromptTokens * perToken(promptLogprobs);
  if (entries <= maxLogprobEntries) return;
  const param = logprobs === undefined ? "prompt_logprobs" : "max_tokens";
  throw invalidField(
    param,
    `the answer could hold ${entries} logprobs, and at most ${maxLogprobEntries} are kept; ask for fewer ` +
      "tokens (max_tokens), choices (n) or alternatives (logprobs)",
  );
}

/** Checked here because the engine's messages know neither the field's name nor the server's flag. */
function checkLogprobs(param: string, count: number | undefined, maxLogprobs: number): void {
  if (count === undefined || maxLogprobs === -1) return;
  if (count >= 0 && count <= maxLogprobs) return;
  throw invalidField(
    param,
    count === -1
      ? "-1 (the whole vocabulary) needs a server started with --max-logprobs -1"
      : `at most ${maxLogprobs} are allowed by this server, got ${count}`,
  );
}
