import { z } from "zod";
import type { ToolCallNote } from "./chat.js";
import {
  accountFields,
  deliveryFields,
  isEmpty,
  isFalse,
  listOf,
  maxTokenId,
  mediaFields,
  octavoTerms,
  requestLimits,
  samplingFields,
  unsupported,
  withoutEffect,
} from "./fields.js";
import { constraintFields } from "./structured.js";

/** OpenAI's Responses API, as far as a text model without built-in tools has it. Names and shapes: OpenAI's API reference. */

const textPart = z.object({
  type: z.enum(["input_text", "output_text", "text", "reasoning_text", "summary_text"], {
    error: "only text parts are supported; this model reads text",
  }),
  text: z.string(),
  annotations: withoutEffect(),
  logprobs: withoutEffect(),
  prompt_cache_breakpoint: withoutEffect(),
});
const imagePart = z.object({
  type: z.literal("input_image"),
  image_url: z.string(),
  detail: withoutEffect(),
  file_id: unsupported("there is no store of files; send image_url with a data URL"),
  prompt_cache_breakpoint: withoutEffect(),
});
const textParts = listOf(textPart, { max: requestLimits.contentParts });

/** Error of the text part, which clients without images meet. */
const inputPart = z.union([imagePart, textPart], {
  error: "only parts of text and images (input_image) are supported",
});

/** What an item of an earlier answer has besides its content, when it is sent back. */
const answered = {
  id: withoutEffect(),
  status: withoutEffect(),
  phase: withoutEffect(),
  caller: withoutEffect(),
  namespace: withoutEffect(),
} as const;

const inputMessage = z.object({
  ...answered,
  type: z.literal("message").optional(),
  role: z.enum(["user", "assistant", "system", "developer"]),
  content: z.union([z.string(), listOf(inputPart, { max: requestLimits.contentParts })]),
});

const inputItem = z.union(
  [
    inputMessage,
    z.object({
      ...answered,
      type: z.literal("function_call"),
      call_id: z.string().min(1).max(requestLimits.idLength),
      name: z.string().min(1),
      arguments: z.string(),
    }),
    z.object({
      ...answered,
      type: z.literal("custom_tool_call"),
      call_id: z.string().min(1).max(requestLimits.idLength),
      name: z.string().min(1),
      input: z.string(),
    }),
    z.object({
      ...answered,
      type: z.enum(["function_call_output", "custom_tool_call_output"]),
      call_id: z.string().min(1).max(requestLimits.idLength),
      output: z.union([z.string(), textParts]),
    }),
    z.object({
      ...answered,
      type: z.literal("reasoning"),
      summary: textParts.nullish(),
      content: textParts.nullish(),
      encrypted_content: withoutEffect(),
    }),
  ],
  {
    error:
      "expected a message, function_call, custom_tool_call, an output of one of these, or a reasoning item; others are not supported",
  },
);

const deferred = unsupported("this server has no tool search", isFalse);

const functionTool = z.object({
  type: z.literal("function"),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
  defer_loading: deferred,
});

const customTool = z.object({
  type: z.literal("custom"),
  name: z.string().min(1),
  description: z.string().nullish(),
  format: z
    .discriminatedUnion("type", [
      z.object({ type: z.literal("text") }),
      z.object({
        type: z.literal("grammar"),
        syntax: z.enum(["lark", "regex"]),
        definition: z.string().min(1),
      }),
    ])
    .nullish(),
  defer_loading: deferred,
});

const tool = z.discriminatedUnion("type", [functionTool, customTool], {
  error: "only function and custom tools are supported; this server has no built-in tools",
});

const namedTool = z.object({ type: z.enum(["function", "custom"]), name: z.string() });

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  namedTool,
  z.object({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: listOf(namedTool, { min: 1, max: requestLimits.tools }),
  }),
]);

const verbosity = unsupported("these models have no such setting", (value) => value === "medium");

/** vLLM's additions, as in chat completions. */
const samplingAdditions = {
  top_k: samplingFields.top_k,
  repetition_penalty: samplingFields.repetition_penalty,
  presence_penalty: samplingFields.presence_penalty,
  frequency_penalty: samplingFields.frequency_penalty,
  logit_bias: samplingFields.logit_bias,
  seed: samplingFields.seed,
  stop: samplingFields.stop,
  ignore_eos: samplingFields.ignore_eos,
  skip_special_tokens: samplingFields.skip_special_tokens,
  include_stop_str_in_output: samplingFields.include_stop_str_in_output,
};
const { cache_salt, priority, vllm_xargs } = deliveryFields;

/** What answers would have besides their text; encrypted reasoning goes without, since reasoning is returned as it is. */
const include = z.array(
  z.string().refine((name) => name !== "message.output_text.logprobs", {
    error: "logprobs are not reported here; use /v1/chat/completions",
  }),
);

export const responsesRequest = z.object({
  model: z.string().max(4096).nullish(),
  input: z.union([z.string(), listOf(inputItem, { min: 1, max: requestLimits.messages })]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().min(1).max(requestLimits.idLength).nullish(),
  max_output_tokens: z.int().min(1).max(maxTokenId).nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  temperature: z.number().min(0).max(1e6).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  tools: listOf(tool, { max: requestLimits.tools }).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.object({ format: z.looseObject({ type: z.string() }).nullish(), verbosity }).nullish(),
  /** Reasoning is returned whole, so that a summary is not needed. */
  reasoning: z
    .object({
      effort: z.string().max(32).nullish(),
      summary: withoutEffect(),
      generate_summary: withoutEffect(),
      context: withoutEffect(),
      mode: withoutEffect(),
    })
    .nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  user: z.string().nullish(),
  include: withoutEffect(include.max(64)),
  stream_options: withoutEffect(z.object({ include_obfuscation: withoutEffect() })),
  ...accountFields,
  ...samplingAdditions,
  cache_salt,
  priority,
  structured_outputs: constraintFields.structured_outputs,
  vllm_xargs,
  mm_processor_kwargs: mediaFields.mm_processor_kwargs,
  /** Ids of responses give access to them, so that only the server draws them. */
  request_id: withoutEffect(),
  enable_response_messages: unsupported("responses have items alone", isFalse),
  previous_input_messages: unsupported("use previous_response_id, or send the items in input"),
  previous_response: unsupported("use previous_response_id, or send the items in input"),
  octavo: octavoTerms.nullish(),
  truncation: unsupported("prompts are never cut in silence", (value) => value === "disabled"),
  top_logprobs: unsupported("not reported here; use /v1/chat/completions", (value) => value === 0),
  max_tool_calls: unsupported("this server has no built-in tools"),
  prompt: unsupported("stored prompts are not supported"),
  conversation: unsupported("stored conversations are not supported; use previous_response_id"),
  context_management: unsupported("not supported", isEmpty),
});

export type ResponsesRequest = z.output<typeof responsesRequest>;
export type ResponsesInputItem = Exclude<ResponsesRequest["input"], string>[number];

export type ResponseItemStatus = "in_progress" | "completed" | "incomplete";

interface OutputTextPart {
  type: "output_text";
  text: string;
  annotations: readonly never[];
  logprobs: readonly never[];
}

export type ResponseItem =
  | {
      type: "reasoning";
      id: string;
      status: ResponseItemStatus;
      summary: readonly never[];
      content: { type: "reasoning_text"; text: string }[];
    }
  | { type: "message"; id: string; status: ResponseItemStatus; role: "assistant"; content: OutputTextPart[] }
  | {
      type: "function_call";
      id: string;
      status: ResponseItemStatus;
      call_id: string;
      name: string;
      arguments: string;
      octavo?: ToolCallNote;
    }
  | {
      type: "custom_tool_call";
      id: string;
      status: ResponseItemStatus;
      call_id: string;
      name: string;
      input: string;
      octavo?: ToolCallNote;
    };

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

export interface ResponseUsage {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

/** The answer, and what was asked for as OpenAI repeats it. */
export interface ResponseObject {
  readonly id: string;
  readonly object: "response";
  readonly created_at: number;
  readonly status: ResponseStatus;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly incomplete_details: { readonly reason: "max_output_tokens" } | null;
  readonly model: string;
  readonly output: readonly ResponseItem[];
  readonly usage: ResponseUsage | null;
  readonly [echoed: string]: unknown;
}
