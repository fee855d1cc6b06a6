/** One alternative of a chat completion's token. `bytes` are UTF-8, and may be part of a character. */
export interface ChatTopLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export interface ChatTokenLogprob extends ChatTopLogprob {
  readonly top_logprobs: readonly ChatTopLogprob[];
}

export interface ChatLogprobs {
  readonly content: readonly ChatTokenLogprob[];
}

/** The legacy completions form. Arrays run in parallel; offsets count code points of the choice's text. */
export interface CompletionLogprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
  readonly text_offset: readonly number[];
}

/** vLLM's `prompt_logprobs`: per prompt position, token id to its logprob; null where nothing was predicted. */
export type PromptLogprobs = readonly (Readonly<Record<string, PromptTokenLogprob>> | null)[];

export interface PromptTokenLogprob {
  readonly logprob: number;
  readonly rank: number;
  readonly decoded_token: string;
}
