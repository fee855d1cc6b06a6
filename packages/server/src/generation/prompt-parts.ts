import type { Tokenizer } from "@octavo/engine";
import type { ChatCompletionRequest } from "@octavo/protocol";

/** The prompt as returned in an answer, if requested: its ids, and its text with special tokens. */
export function promptParts(
  request: Pick<ChatCompletionRequest, "return_token_ids" | "return_prompt_text">,
  tokenizer: Tokenizer,
  promptTokens: Int32Array,
): { readonly prompt_token_ids?: readonly number[]; readonly prompt_text?: string } {
  return {
    ...(request.return_token_ids === true && { prompt_token_ids: Array.from(promptTokens) }),
    ...(request.return_prompt_text === true && {
      prompt_text: tokenizer.decode(promptTokens, { skipSpecialTokens: false }),
    }),
  };
}

/** What whole answers have where they were not asked for, as vLLM's do; chunks leave them out. */
export const noPromptParts = { prompt_token_ids: null, prompt_text: null } as const;
