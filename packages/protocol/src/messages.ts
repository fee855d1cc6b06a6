import { z } from "zod";
import {
  isEmpty,
  isFalse,
  listOf,
  maxTokenId,
  octavoTerms,
  requestLimits,
  transferFields,
  unsupported,
  withoutEffect,
} from "./fields.js";
import type { ToolCallNote } from "./chat.js";
import type { OctavoError } from "./errors.js";

/** Anthropic's Messages API, as far as a text model has it. Names and shapes: Anthropic's API reference. */

/** Prefixes are cached without being told where they end. */
const cached = { cache_control: withoutEffect() } as const;

const textBlock = z.object({
  type: z.literal("text"),
  text: z.string(),
  citations: withoutEffect(),
  ...cached,
});

/** An image in base64, or at a URL from which the operator allows to fetch. */
const imageBlock = z.object({
  type: z.literal("image"),
  source: z.discriminatedUnion(
    "type",
    [
      z.object({
        type: z.literal("base64"),
        media_type: z.enum(["image/jpeg", "image/png", "image/gif", "image/webp"]),
        data: z.string().min(1),
      }),
      z.object({ type: z.literal("url"), url: z.string() }),
    ],
    { error: "an image's source is base64 or a url" },
  ),
  ...cached,
});

const contentBlock = z.discriminatedUnion(
  "type",
  [
    textBlock,
    imageBlock,
    z.object({ type: z.literal("thinking"), thinking: z.string(), signature: withoutEffect() }),
    z.object({ type: z.literal("redacted_thinking"), data: withoutEffect() }),
    z.object({
      type: z.literal("tool_use"),
      id: z.string().min(1).max(requestLimits.idLength),
      name: z.string().min(1),
      input: z.record(z.string(), z.unknown()),
      caller: withoutEffect(),
      toolset_name: withoutEffect(),
      ...cached,
    }),
    z.object({
      type: z.literal("tool_result"),
      tool_use_id: z.string().min(1).max(requestLimits.idLength),
      content: z.union([z.string(), listOf(textBlock, { max: requestLimits.contentParts })]).nullish(),
      is_error: z.boolean().nullish(),
      toolset_name: withoutEffect(),
      ...cached,
    }),
  ],
  { error: "only text, image, thinking, tool_use and tool_result blocks are supported" },
);

const message = z.object({
  role: z.enum(["user", "assistant"]),
  content: z.union([z.string(), listOf(contentBlock, { max: requestLimits.contentParts })]),
});

const isDirect = (value: unknown): boolean =>
  Array.isArray(value) && value.every((caller) => caller === "direct");

const tool = z.object({
  type: z.literal("custom", { error: "only tools that the client runs are supported" }).nullish(),
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: z.record(z.string(), z.unknown()),
  strict: z.boolean().nullish(),
  eager_input_streaming: withoutEffect(),
  defer_loading: unsupported("this server has no tool search", isFalse),
  allowed_callers: unsupported("only the model calls tools", isDirect),
  input_examples: unsupported("examples of inputs are not shown to the model", isEmpty),
  ...cached,
});

const toolChoice = z.object({
  type: z.enum(["auto", "any", "tool", "none"]),
  name: z.string().nullish(),
  disable_parallel_tool_use: z.boolean().nullish(),
});

const display = z.enum(["summarized", "omitted"]).nullish();
const withoutBudget = unsupported("a budget goes with the type enabled");

const thinking = z.discriminatedUnion(
  "type",
  [
    z.object({
      type: z.literal("enabled"),
      budget_tokens: z.int().min(1).max(maxTokenId),
      display,
    }),
    z.object({ type: z.literal("adaptive"), budget_tokens: withoutBudget, display }),
    z.object({ type: z.literal("disabled"), budget_tokens: withoutBudget }),
  ],
  { error: "is one of the types enabled, disabled and adaptive" },
);

const outputFormat = z.object({
  type: z.literal("json_schema"),
  schema: z.record(z.string(), z.unknown()),
});

const promptFields = {
  model: z.string().max(4096).nullish(),
  messages: listOf(message, { min: 1, max: requestLimits.messages }),
  system: z.union([z.string(), listOf(textBlock, { max: requestLimits.contentParts })]).nullish(),
  tools: listOf(tool, { max: requestLimits.tools }).nullish(),
  tool_choice: toolChoice.nullish(),
  thinking: thinking.nullish(),
  output_config: z.object({ format: outputFormat.nullish(), effort: z.string().max(32).nullish() }).nullish(),
  /** The name of `output_config.format` in Anthropic's beta. */
  output_format: outputFormat.nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
  ...cached,
  /** Whom Anthropic bills, and how fast it answers. */
  billing_policy: withoutEffect(),
  speed: withoutEffect(),
  user_profile_id: withoutEffect(),
  workspace_id: withoutEffect(),
  compaction: unsupported("conversations are never compacted here"),
  context_management: unsupported("conversations are never edited here", isEmpty),
  mcp_servers: unsupported("MCP servers are not called from here", isEmpty),
} as const;

export const messagesRequest = z.object({
  ...promptFields,
  max_tokens: z.int().min(1).max(maxTokenId),
  stream: z.boolean().nullish(),
  stop_sequences: z
    .array(z.string().min(1).max(requestLimits.stopStringLength))
    .max(requestLimits.stopStrings)
    .nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(-1).max(maxTokenId).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  octavo: octavoTerms.nullish(),
  service_tier: withoutEffect(),
  fallback_credit_token: withoutEffect(),
  diagnostics: unsupported("answers have no diagnostics; ask /v1/requests"),
  inference_geo: unsupported("this server answers where it runs"),
  container: unsupported("containers are not supported"),
  fallbacks: unsupported("this server serves no other models", isEmpty),
  thread: unsupported("conversations are not stored"),
  ...transferFields,
});

export type MessagesRequest = z.output<typeof messagesRequest>;

export const countTokensRequest = z.object(promptFields);

export type CountTokensRequest = z.output<typeof countTokensRequest>;

export type MessageBlock =
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "text"; text: string }
  /** `octavo` where the arguments are not a JSON object: `input` is empty then, and the text is in the note. */
  | {
      type: "tool_use";
      id: string;
      name: string;
      input: unknown;
      octavo?: ToolCallNote & { readonly arguments: string };
    };

export type MessageStopReason = "end_turn" | "max_tokens" | "stop_sequence" | "tool_use";

export interface MessageUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
}

export interface MessageAnswer {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly MessageBlock[];
  readonly stop_reason: MessageStopReason | null;
  readonly stop_sequence: string | null;
  readonly usage: MessageUsage;
}

const errorTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** Errors of `/v1/messages`, in Anthropic's shape. */
export function toMessagesErrorBody(error: OctavoError): object {
  const type = errorTypes[error.status] ?? (error.status < 500 ? "invalid_request_error" : "api_error");
  return { type: "error", error: { type, message: error.message } };
}
