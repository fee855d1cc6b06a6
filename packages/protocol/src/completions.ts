import { z } from "zod";
import { deliveryFields, maxTokenId, samplingFields, unsupported } from "./fields.js";
import type { CompletionLogprobs, PromptLogprobs } from "./logprobs.js";
import { promptInputs } from "./prompt-input.js";
import { constraintFields } from "./structured.js";
import type { OctavoNotes } from "./serving-record.js";
import type { UsageInfo } from "./usage.js";

/** What `max_tokens` is when a completions request does not say. */
export const defaultCompletionTokens = 16;

export const completionRequest = z.object({
  ...samplingFields,
  ...deliveryFields,
  ...constraintFields,
  prompt: promptInputs,
  /** 0 is allowed with `echo`: the prompt is scored and returned alone. */
  max_tokens: z.int().min(0).max(maxTokenId).nullish(),
  logprobs: z.int().min(-1).nullish(),
  echo: z.boolean().nullish(),
  add_special_tokens: z.boolean().nullish(),
  suffix: unsupported("text insertion is not supported", (value) => value === ""),
  best_of: unsupported("best_of above 1 is not supported; ask for n choices instead", (value) => value === 1),
});

export type CompletionRequest = z.output<typeof completionRequest>;

export type CompletionFinishReason = "stop" | "length";

export interface CompletionChoice {
  readonly index: number;
  readonly text: string;
  readonly logprobs: CompletionLogprobs | null;
  /** null in stream chunks before the last one of the choice. */
  readonly finish_reason: CompletionFinishReason | null;
  readonly stop_reason: string | number | null;
  /** These four are null in whole answers, and left out of chunks, unless asked for. */
  readonly prompt_logprobs?: PromptLogprobs | null;
  readonly token_ids?: readonly number[] | null;
  readonly prompt_token_ids?: readonly number[] | null;
  readonly prompt_text?: string | null;
}

/** A full answer, or one chunk of a stream; both have this shape in OpenAI's API. */
export interface Completion {
  readonly id: string;
  readonly object: "text_completion";
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly choices: readonly CompletionChoice[];
  readonly usage?: UsageInfo | null;
  /** With `octavo.include_serving_record`. */
  readonly octavo?: OctavoNotes;
}
