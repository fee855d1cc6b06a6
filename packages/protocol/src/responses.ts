import { z } from "zod";
import type { ToolCallNote } from "./chat.js";
import { listOf, maxTokenId, octavoTerms, requestLimits, unsupported } from "./fields.js";

/** OpenAI's Responses API, as far as a text model without built-in tools has it. Names and shapes: OpenAI's API reference. */

const textPart = z.object({
  type: z.enum(["input_text", "output_text", "text", "reasoning_text", "summary_text"], {
    error: "only text parts are supported; this model reads text",
  }),
  text: z.string(),
});
const textParts = listOf(textPart, { max: requestLimits.contentParts });

const inputMessage = z.object({
  type: z.literal("message").optional(),
  role: z.enum(["user", "assistant", "system", "developer"]),
  content: z.union([z.string(), textParts]),
});

const inputItem = z.union(
  [
    inputMessage,
    z.object({
      type: z.literal("function_call"),
      call_id: z.string().min(1).max(requestLimits.idLength),
      name: z.string().min(1),
      arguments: z.string(),
    }),
    z.object({
      type: z.literal("function_call_output"),
      call_id: z.string().min(1).max(requestLimits.idLength),
      output: z.union([z.string(), textParts]),
    }),
    z.object({
      type: z.literal("reasoning"),
      summary: textParts.nullish(),
      content: textParts.nullish(),
    }),
  ],
  {
    error:
      "expected a message, function_call, function_call_output or reasoning item; others are not supported",
  },
);

const functionTool = z.object({
  type: z.literal("function", {
    error: "only function tools are supported; this server has no built-in tools",
  }),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.object({ type: z.literal("function"), name: z.string() }),
]);

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

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
  tools: listOf(functionTool, { max: requestLimits.tools }).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.object({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  reasoning: z.object({ effort: z.string().max(32).nullish() }).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  user: z.string().nullish(),
  include: z.array(z.string()).max(64).nullish(),
  service_tier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  stream_options: z.looseObject({}).nullish(),
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
