/** Token counts of a request. `cached_tokens` is the part of the prompt whose KV blocks were reused. */
export interface UsageInfo {
  readonly prompt_tokens: number;
  readonly total_tokens: number;
  readonly completion_tokens: number;
  /** Absent while the request runs. */
  readonly prompt_tokens_details?: { readonly cached_tokens: number };
  /** Present where a model's reasoning is separated from its answer. */
  readonly completion_tokens_details?: { readonly reasoning_tokens: number };
}

export function usageInfo(
  promptTokens: number,
  completionTokens: number,
  cachedTokens?: number,
  reasoningTokens?: number,
): UsageInfo {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + completionTokens,
    completion_tokens: completionTokens,
    ...(cachedTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } }),
    ...(reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}
