import type { CompletionLogprobs } from "@octavo/protocol";

/** Concatenates parts of one choice's logprobs. */
export function joinLogprobs(parts: readonly CompletionLogprobs[]): CompletionLogprobs {
  return {
    tokens: parts.flatMap((part) => part.tokens),
    token_logprobs: parts.flatMap((part) => part.token_logprobs),
    top_logprobs: parts.flatMap((part) => part.top_logprobs),
    text_offset: parts.flatMap((part) => part.text_offset),
  };
}
