import {
  asArray,
  asNumber,
  asObject,
  asObjects,
  asString,
  definedFields,
  type JsonFields,
} from "@octavo/protocol";
import type { CapturedMessage, LlmResponseFacts, SpanOutcome, TokenUsage } from "../span/llm-span.js";
import type { CallKind } from "./call-kind.js";
import { capturedChatMessage, responsesItem } from "./captured-request.js";
import type { ContentBudget } from "./content-budget.js";

/** What an answer says of itself. */
export interface ObservedAnswer {
  readonly response: LlmResponseFacts;
  readonly usage: TokenUsage;
  readonly outputMessages: readonly CapturedMessage[];
  /** Set when the answer itself reports a failure. */
  readonly failure: SpanOutcome | undefined;
}

const maxNames = 64;

/** Reads a whole answer. `budget` undefined: no content is taken. */
export function observedAnswerOf(
  kind: CallKind,
  body: unknown,
  budget: ContentBudget | undefined,
): ObservedAnswer {
  const fields = asObject(body) ?? {};
  return kind === "responses" ? responsesAnswer(fields, budget) : choicesAnswer(kind, fields, budget);
}

function choicesAnswer(
  kind: CallKind,
  fields: JsonFields,
  budget: ContentBudget | undefined,
): ObservedAnswer {
  const choices = asObjects(fields["choices"]);
  const messages = choices.map((choice) => asObject(choice["message"]));
  const embedding = kind === "embeddings" ? asObjects(fields["data"])[0]?.["embedding"] : undefined;
  return {
    response: definedFields({
      ...commonFacts(fields),
      finishReasons: someOf(choices.flatMap((choice) => asString(choice["finish_reason"]) ?? [])),
      toolNames: someOf(
        messages
          .flatMap((message) => asObjects(message?.["tool_calls"]))
          .flatMap((call) => asString(asObject(call["function"])?.["name"]) ?? []),
      ),
      embeddingDimensions: embedding === undefined ? undefined : dimensions(embedding),
    }),
    usage: readTokenUsage(fields["usage"]),
    outputMessages:
      budget === undefined
        ? []
        : choices.map((choice, index) => outputMessage(choice, messages[index], budget)),
    failure: undefined,
  };
}

function outputMessage(
  choice: JsonFields,
  message: JsonFields | undefined,
  budget: ContentBudget,
): CapturedMessage {
  const finishReason = asString(choice["finish_reason"]);
  const content: CapturedMessage =
    message === undefined
      ? { role: "assistant", parts: [{ type: "text", content: budget.take(asString(choice["text"]) ?? "") }] }
      : capturedChatMessage(message, budget);
  return finishReason === undefined ? content : { ...content, finishReason };
}

/** OpenAI's clients ask for base64 of 32-bit floats unless told otherwise. */
function dimensions(embedding: unknown): number | undefined {
  if (typeof embedding === "string") return Math.floor((embedding.length * 3) / 4 / 4);
  return Array.isArray(embedding) ? embedding.length : undefined;
}

function responsesAnswer(fields: JsonFields, budget: ContentBudget | undefined): ObservedAnswer {
  const output = asObjects(fields["output"]);
  const status = asString(fields["status"]);
  const error = asObject(fields["error"]);
  const reason = asString(asObject(fields["incomplete_details"])?.["reason"]) ?? status;
  return {
    response: definedFields({
      ...commonFacts(fields),
      finishReasons: reason === undefined ? undefined : [reason],
      toolNames: someOf(
        output
          .filter((item) => item["type"] === "function_call")
          .flatMap((item) => asString(item["name"]) ?? []),
      ),
    }),
    usage: readTokenUsage(fields["usage"]),
    outputMessages: budget === undefined ? [] : output.map((item) => responsesItem(item, budget)),
    failure: status === "failed" ? responsesFailure(error ?? {}) : undefined,
  };
}

/** Reads the Responses API's failure: an answer's `error`, or a stream's event of that type. */
export function responsesFailure(error: JsonFields): SpanOutcome {
  return {
    kind: "error",
    errorType: nameOf(error["code"]) ?? "response_failed",
    message: asString(error["message"]),
  };
}

export function commonFacts(fields: JsonFields): LlmResponseFacts {
  return definedFields({
    id: nameOf(fields["id"]),
    model: nameOf(fields["model"]),
    systemFingerprint: nameOf(fields["system_fingerprint"]),
    serviceTier: nameOf(fields["service_tier"]),
  });
}

/** An empty name is none: Azure's streams begin with a chunk of the prompt's filter results whose id and model are empty. */
function nameOf(value: unknown): string | undefined {
  const text = asString(value);
  return text === "" ? undefined : text;
}

/** Both of OpenAI's spellings: chat's and the Responses API's. */
export function readTokenUsage(value: unknown): TokenUsage {
  const usage = asObject(value) ?? {};
  const input = asObject(usage["prompt_tokens_details"]) ?? asObject(usage["input_tokens_details"]);
  const output = asObject(usage["completion_tokens_details"]) ?? asObject(usage["output_tokens_details"]);
  return definedFields({
    inputTokens: asNumber(usage["prompt_tokens"] ?? usage["input_tokens"]),
    outputTokens: asNumber(usage["completion_tokens"] ?? usage["output_tokens"]),
    cacheReadInputTokens: asNumber(input?.["cached_tokens"]),
    cacheWriteInputTokens: asNumber(input?.["cache_write_tokens"]),
    reasoningOutputTokens: asNumber(output?.["reasoning_tokens"]),
  });
}

export function someOf(names: readonly string[]): readonly string[] | undefined {
  return names.length === 0 ? undefined : names.slice(0, maxNames);
}

/** Whether a list of that name holds anything. */
export function hasItems(fields: JsonFields | undefined, name: string): boolean {
  return asArray(fields?.[name]).length > 0;
}
