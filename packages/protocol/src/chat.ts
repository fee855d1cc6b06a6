import { z } from "zod";
import { chatMessages, chatTools } from "./chat-messages.js";
import {
  accountFields,
  deliveryFields,
  listOf,
  maxTokenId,
  mediaFields,
  requestLimits,
  samplingFields,
  unsupported,
  withoutEffect,
} from "./fields.js";
import type { ChatLogprobs, PromptLogprobs } from "./logprobs.js";
import type { OctavoNotes } from "./serving-record.js";
import { constraintFields } from "./structured.js";
import type { UsageInfo } from "./usage.js";

/** Fields that shape the prompt; `/tokenize` takes the same ones. */
export const chatPromptFields = {
  messages: chatMessages,
  tools: chatTools.nullish(),
  documents: listOf(z.record(z.string(), z.unknown()), { max: requestLimits.documents }).nullish(),
  chat_template: z.string().max(requestLimits.templateLength).nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
  add_generation_prompt: z.boolean().nullish(),
  continue_final_message: z.boolean().nullish(),
  add_special_tokens: z.boolean().nullish(),
  ...mediaFields,
} as const;

const namedTool = z.discriminatedUnion("type", [
  z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
  z.object({ type: z.literal("custom"), custom: z.object({ name: z.string() }) }),
]);

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  namedTool,
  /** Only these may be called; the others stay in the prompt, whose beginning remains the same for the cache. */
  z.object({
    type: z.literal("allowed_tools"),
    allowed_tools: z.object({
      mode: z.enum(["auto", "required"]),
      tools: listOf(namedTool, { min: 1, max: requestLimits.tools }),
    }),
  }),
]);

export const chatCompletionRequest = z.object({
  ...samplingFields,
  ...deliveryFields,
  ...constraintFields,
  ...chatPromptFields,
  ...accountFields,
  max_tokens: z.int().min(1).max(maxTokenId).nullish(),
  max_completion_tokens: z.int().min(1).max(maxTokenId).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(-1).nullish(),
  echo: z.boolean().nullish(),
  reasoning_effort: z.string().max(32).nullish(),
  include_reasoning: z.boolean().nullish(),
  /** -1 is no bound. */
  thinking_token_budget: z.int().min(-1).max(maxTokenId).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  functions: unsupported("use tools instead of the older functions field"),
  function_call: unsupported(
    "use tool_choice instead of the older function_call field",
    (value) => value === "none",
  ),
  verbosity: unsupported("these models have no such setting", (value) => value === "medium"),
  web_search_options: unsupported("this server has no built-in tools"),
  /** OpenAI's: a guess that makes generation faster and changes no answer. */
  prediction: withoutEffect(),
  /** OpenAI's: keeps the answer for its own dashboard. */
  store: withoutEffect(),
  audio: unsupported("audio output is not supported"),
  modalities: unsupported(
    "only text output is supported",
    (value) => Array.isArray(value) && value.every((item) => item === "text"),
  ),
});

export type ChatCompletionRequest = z.output<typeof chatCompletionRequest>;

/** The sampling fields, which completions share. */
export type SamplingFields = Pick<ChatCompletionRequest, keyof typeof samplingFields>;

export type ChatFinishReason = "stop" | "length" | "tool_calls";

/**
 * What Octavo adds to a call whose arguments are not a JSON object, or not one with the text that a custom tool takes; they
 * are delivered as the model wrote them.
 */
export interface ToolCallNote {
  readonly invalid_arguments: string;
}

export interface ChatToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
  readonly octavo?: ToolCallNote;
}

export interface ChatCustomToolCall {
  readonly id: string;
  readonly type: "custom";
  readonly custom: { readonly name: string; readonly input: string };
  readonly octavo?: ToolCallNote;
}

export interface ChatAnswerMessage {
  readonly role: string;
  /** null where the answer consists of tool calls or reasoning alone. */
  readonly content: string | null;
  readonly reasoning: string | null;
  /** The same text under the name that vLLM gave it before; with `--enable-reasoning-content`. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly (ChatToolCall | ChatCustomToolCall)[];
}

/** The first delta of a call has id, type and name; later ones have pieces of the arguments or the input. */
export interface ChatToolCallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: "function" | "custom";
  readonly function?: { readonly name?: string; readonly arguments: string };
  readonly custom?: { readonly name?: string; readonly input: string };
  readonly octavo?: ToolCallNote;
}

export interface ChatDelta {
  readonly role?: string;
  readonly content?: string;
  readonly reasoning?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ChatToolCallDelta[];
}

export interface ChatChoice {
  readonly index: number;
  readonly message: ChatAnswerMessage;
  readonly logprobs: ChatLogprobs | null;
  readonly finish_reason: ChatFinishReason;
  readonly stop_reason: string | number | null;
  /** null unless asked for, as the prompt's parts. */
  readonly token_ids: readonly number[] | null;
}

export interface ChatCompletion {
  readonly id: string;
  readonly object: "chat.completion";
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly choices: readonly ChatChoice[];
  readonly usage: UsageInfo;
  readonly prompt_logprobs: PromptLogprobs | null;
  readonly prompt_token_ids: readonly number[] | null;
  readonly prompt_text: string | null;
  /** With `octavo.include_serving_record`. */
  readonly octavo?: OctavoNotes;
}

export interface ChatChunkChoice {
  readonly index: number;
  readonly delta: ChatDelta;
  readonly logprobs: ChatLogprobs | null;
  readonly finish_reason: ChatFinishReason | null;
  readonly stop_reason?: string | number | null;
  readonly token_ids?: readonly number[];
}

export interface ChatCompletionChunk {
  readonly id: string;
  readonly object: "chat.completion.chunk";
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly choices: readonly ChatChunkChoice[];
  readonly usage?: UsageInfo | null;
  readonly prompt_token_ids?: readonly number[];
  readonly prompt_text?: string;
  /** With `octavo.include_serving_record`. */
  readonly octavo?: OctavoNotes;
}
