import {
  asNumber,
  asObject,
  asObjects,
  asRecord,
  asString,
  type JsonFields,
  OctavoError,
  parseJson,
} from "@octavo/protocol";
import { SseSplitter } from "../relay/sse-splitter.js";
import { chatAnswer, ChunkMaker, type WireFinishReason, type TranslatedUsage } from "./chat-answer.js";
import {
  alternatingTurns,
  type ChatPart,
  type ChatRequestParts,
  type ChatTurn,
  readChatRequest,
} from "./chat-request.js";
import type { StreamPart, StreamReader, WireCall, WireFamily } from "./family.js";

/** Their API wants a bound; this is the one that all of their current models take. */
const defaultMaxTokens = 4096;

/** Anthropic's messages API, version 2023-06-01. Clients that speak it themselves are passed on as they are. */
export const anthropicFamily: WireFamily = {
  operations: ["chat", "messages"],
  streamType: "text/event-stream",
  request: (call) => ({
    path: `${call.basePath}/messages`,
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify(
      call.operation === "messages" ? { ...call.fields, model: call.model } : messagesRequestOf(call),
    ),
  }),
  answer: (json, call) => (call.operation === "messages" ? json : answerOf(json)),
  reader: (call, { maxEventBytes }) => new MessagesReader(call, maxEventBytes),
  error: (json) => {
    const error = asRecord(asRecord(json)["error"]);
    return { message: asString(error["message"]), type: asString(error["type"]) };
  },
};

function messagesRequestOf(call: WireCall): JsonFields {
  const request = readChatRequest(call.fields);
  const { tools, toolChoice } = request;
  return {
    model: call.model,
    max_tokens: request.maxTokens ?? defaultMaxTokens,
    messages: alternatingTurns(request.turns, blocksOf),
    ...(request.system.length > 0 && { system: request.system.join("\n\n") }),
    // they allow 0 to 1, OpenAI 0 to 2
    ...(request.temperature !== undefined && { temperature: Math.min(1, request.temperature) }),
    ...(request.topP !== undefined && { top_p: request.topP }),
    ...(request.stop.length > 0 && { stop_sequences: request.stop }),
    ...(call.isStream && { stream: true }),
    ...(tools.length > 0 &&
      toolChoice !== "none" && {
        tools: tools.map(({ name, description, schema }) => ({
          name,
          ...(description !== undefined && { description }),
          input_schema: schema,
        })),
        ...(toolChoice !== undefined && { tool_choice: toolChoiceOf(toolChoice) }),
      }),
    ...formatOf(request),
  };
}

function formatOf({ jsonSchema }: ChatRequestParts): JsonFields {
  if (jsonSchema === undefined) return {};
  if (jsonSchema === true)
    throw new OctavoError(
      "unsupported_parameter",
      "response_format: this model's provider needs a json_schema",
      {
        param: "response_format",
      },
    );
  return { output_config: { format: { type: "json_schema", schema: jsonSchema } } };
}

function toolChoiceOf(choice: NonNullable<ChatRequestParts["toolChoice"]>): JsonFields {
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : "auto" };
}

function blocksOf({ role, parts, calls, callId }: ChatTurn): JsonFields[] {
  const content = parts.map(blockOf);
  if (role === "tool") return [{ type: "tool_result", tool_use_id: callId ?? "", content }];
  return [...content, ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input }))];
}

function blockOf(part: ChatPart): JsonFields {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "image")
    return { type: "image", source: { type: "base64", media_type: part.mediaType, data: part.base64 } };
  return { type: "image", source: { type: "url", url: part.url } };
}

function finishReasonOf(reason: unknown): WireFinishReason {
  if (reason === "tool_use") return "tool_calls";
  if (reason === "max_tokens" || reason === "model_context_window_exceeded") return "length";
  return reason === "refusal" ? "content_filter" : "stop";
}

/** Their input tokens leave out what was read from or written to the cache. */
function usageOf(usage: JsonFields): TranslatedUsage {
  const cachedTokens = asNumber(usage["cache_read_input_tokens"]) ?? 0;
  const written = asNumber(usage["cache_creation_input_tokens"]) ?? 0;
  return {
    promptTokens: (asNumber(usage["input_tokens"]) ?? 0) + cachedTokens + written,
    cachedTokens,
    completionTokens: asNumber(usage["output_tokens"]) ?? 0,
  };
}

function answerOf(json: JsonFields): JsonFields {
  const blocks = asObjects(json["content"]);
  const textOf = (type: string, field: string): string =>
    blocks.map((block) => (block["type"] === type ? (asString(block[field]) ?? "") : "")).join("");
  return chatAnswer({
    id: asString(json["id"]) ?? "",
    model: asString(json["model"]) ?? "",
    text: textOf("text", "text"),
    reasoning: textOf("thinking", "thinking"),
    calls: blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input }) => ({
        id: asString(id) ?? "",
        name: asString(name) ?? "",
        arguments: JSON.stringify(input ?? {}),
      })),
    finishReason: finishReasonOf(json["stop_reason"]),
    usage: usageOf(asRecord(json["usage"])),
  });
}

/** Events to chunks; as they are for clients of the messages API. */
class MessagesReader implements StreamReader {
  readonly #splitter: SseSplitter;
  readonly #isPassedOn: boolean;
  readonly #chunks: ChunkMaker;
  /** Place among the tool calls by place among the blocks. */
  readonly #calls = new Map<number, number>();
  #usage: JsonFields = {};
  #isComplete = false;

  constructor(call: WireCall, maxEventBytes: number) {
    this.#splitter = new SseSplitter(maxEventBytes);
    this.#isPassedOn = call.operation === "messages";
    this.#chunks = new ChunkMaker(call.model);
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  push(chunk: Buffer): readonly StreamPart[] {
    return this.#splitter.push(chunk).flatMap(({ raw, data }) => {
      const json = asObject(parseJson(data)?.value);
      if (json === undefined)
        throw new OctavoError("target_answer_invalid", "the target sent an event that is not a JSON object");
      const parts = this.#read(json);
      return this.#isPassedOn ? [{ raw, json }] : parts;
    });
  }

  #read(json: JsonFields): readonly StreamPart[] {
    const chunks = this.#chunks;
    const place = asNumber(json["index"]) ?? 0;
    switch (json["type"]) {
      case "message_start": {
        const message = asRecord(json["message"]);
        chunks.id = asString(message["id"]) ?? "";
        chunks.model = asString(message["model"]) ?? chunks.model;
        this.#usage = asRecord(message["usage"]);
        return [chunks.delta({ role: "assistant", content: "" })];
      }
      case "content_block_start": {
        const block = asRecord(json["content_block"]);
        if (block["type"] !== "tool_use") return [];
        const index = this.#calls.size;
        this.#calls.set(place, index);
        return [chunks.callStart(index, asString(block["id"]) ?? "", asString(block["name"]) ?? "")];
      }
      case "content_block_delta":
        return this.#delta(asRecord(json["delta"]), place);
      case "message_delta":
        this.#usage = { ...this.#usage, ...asRecord(json["usage"]) };
        return [
          chunks.delta({}, finishReasonOf(asRecord(json["delta"])["stop_reason"])),
          chunks.usage(usageOf(this.#usage)),
        ];
      case "message_stop":
        this.#isComplete = true;
        return [];
      case "error": {
        const { message, type } = asRecord(json["error"]);
        throw new OctavoError(
          type === "rate_limit_error" || type === "overloaded_error"
            ? "target_rate_limited"
            : "target_failed",
          asString(message) ?? "the target sent an error",
        );
      }
      default:
        return [];
    }
  }

  #delta(delta: JsonFields, place: number): readonly StreamPart[] {
    const chunks = this.#chunks;
    if (delta["type"] === "text_delta") return [chunks.delta({ content: asString(delta["text"]) ?? "" })];
    if (delta["type"] === "thinking_delta")
      return [chunks.delta({ reasoning_content: asString(delta["thinking"]) ?? "" })];
    if (delta["type"] !== "input_json_delta") return [];
    return [chunks.callArguments(this.#calls.get(place) ?? 0, asString(delta["partial_json"]) ?? "")];
  }
}
