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
import { AwsEventStream } from "./aws-event-stream.js";
import { chatAnswer, ChunkMaker, type WireFinishReason, type TranslatedUsage } from "./chat-answer.js";
import {
  alternatingTurns,
  type ChatPart,
  type ChatRequestParts,
  type ChatTurn,
  readChatRequest,
} from "./chat-request.js";
import type { StreamPart, StreamReader, WireCall, WireFamily } from "./family.js";

/** Amazon Bedrock's Converse API. Requests are signed where they are sent; the family knows no keys. */
export const bedrockFamily: WireFamily = {
  operations: ["chat"],
  streamType: "application/vnd.amazon.eventstream",
  request: (call) => ({
    path: `${call.basePath}/model/${encodeURIComponent(call.model)}/${call.isStream ? "converse-stream" : "converse"}`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(converseRequestOf(readChatRequest(call.fields))),
  }),
  answer: (json, call) => answerOf(json, call.model),
  reader: (call, { maxEventBytes }) => new ConverseReader(call, maxEventBytes),
  error: (json) => {
    const body = asRecord(json);
    return { message: asString(body["message"] ?? body["Message"]), type: asString(body["__type"]) };
  },
};

function converseRequestOf(request: ChatRequestParts): JsonFields {
  if (request.jsonSchema !== undefined)
    throw new OctavoError(
      "unsupported_parameter",
      "response_format: this model's provider has no such setting",
      {
        param: "response_format",
      },
    );
  const { tools, toolChoice } = request;
  const config = {
    ...(request.maxTokens !== undefined && { maxTokens: request.maxTokens }),
    ...(request.temperature !== undefined && { temperature: Math.min(1, request.temperature) }),
    ...(request.topP !== undefined && { topP: request.topP }),
    ...(request.stop.length > 0 && { stopSequences: request.stop }),
  };
  return {
    messages: alternatingTurns(request.turns, blocksOf),
    ...(request.system.length > 0 && { system: request.system.map((text) => ({ text })) }),
    ...(Object.keys(config).length > 0 && { inferenceConfig: config }),
    ...(tools.length > 0 &&
      toolChoice !== "none" && {
        toolConfig: {
          tools: tools.map(({ name, description, schema }) => ({
            toolSpec: {
              name,
              ...(description !== undefined && { description }),
              inputSchema: { json: schema },
            },
          })),
          ...(toolChoice !== undefined && {
            toolChoice:
              typeof toolChoice === "object"
                ? { tool: { name: toolChoice.name } }
                : toolChoice === "required"
                  ? { any: {} }
                  : { auto: {} },
          }),
        },
      }),
  };
}

function blocksOf({ role, parts, calls, callId }: ChatTurn): JsonFields[] {
  const content = parts.map(blockOf);
  if (role === "tool") return [{ toolResult: { toolUseId: callId ?? "", content } }];
  return [...content, ...calls.map(({ id, name, input }) => ({ toolUse: { toolUseId: id, name, input } }))];
}

function blockOf(part: ChatPart): JsonFields {
  if (part.type === "text") return { text: part.text };
  if (part.type === "image-url")
    throw new OctavoError(
      "unsupported_parameter",
      "image_url: this model's provider takes images as data: URLs",
      {
        param: "messages",
      },
    );
  return { image: { format: part.mediaType.replace(/^image\//, ""), source: { bytes: part.base64 } } };
}

function finishReasonOf(reason: unknown): WireFinishReason {
  if (reason === "tool_use") return "tool_calls";
  if (reason === "max_tokens" || reason === "model_context_window_exceeded") return "length";
  return reason === "guardrail_intervened" || reason === "content_filtered" ? "content_filter" : "stop";
}

/** Their input tokens leave out what was read from or written to the cache. */
function usageOf(usage: JsonFields): TranslatedUsage {
  const cachedTokens = asNumber(usage["cacheReadInputTokens"]) ?? 0;
  const written = asNumber(usage["cacheWriteInputTokens"]) ?? 0;
  return {
    promptTokens: (asNumber(usage["inputTokens"]) ?? 0) + cachedTokens + written,
    cachedTokens,
    completionTokens: asNumber(usage["outputTokens"]) ?? 0,
  };
}

function answerOf(json: JsonFields, model: string): JsonFields {
  const blocks = asObjects(asRecord(asRecord(json["output"])["message"])["content"]);
  return chatAnswer({
    id: "chatcmpl-bedrock",
    model,
    text: blocks.map((block) => asString(block["text"]) ?? "").join(""),
    reasoning: blocks
      .map((block) => asString(asRecord(asRecord(block["reasoningContent"])["reasoningText"])["text"]) ?? "")
      .join(""),
    calls: blocks.flatMap(({ toolUse }) => {
      const call = asObject(toolUse);
      return call === undefined
        ? []
        : [
            {
              id: asString(call["toolUseId"]) ?? "",
              name: asString(call["name"]) ?? "",
              arguments: JSON.stringify(call["input"] ?? {}),
            },
          ];
    }),
    finishReason: finishReasonOf(json["stopReason"]),
    usage: usageOf(asRecord(json["usage"])),
  });
}

class ConverseReader implements StreamReader {
  readonly #messages: AwsEventStream;
  readonly #chunks: ChunkMaker;
  readonly #calls = new Map<number, number>();
  #isComplete = false;

  constructor(call: WireCall, maxEventBytes: number) {
    this.#messages = new AwsEventStream(maxEventBytes);
    this.#chunks = new ChunkMaker(call.model);
    this.#chunks.id = "chatcmpl-bedrock";
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  push(chunk: Buffer): readonly StreamPart[] {
    return this.#messages.push(chunk).flatMap(({ headers, payload }) => {
      const json = asObject(parseJson(payload.toString("utf8"))?.value);
      if (json === undefined)
        throw new OctavoError("target_answer_invalid", "the target sent an event that is not a JSON object");
      const exception = headers[":exception-type"] ?? headers[":error-code"];
      if (exception !== undefined)
        throw new OctavoError(
          exception === "throttlingException" ? "target_rate_limited" : "target_failed",
          asString(json["message"]) ?? exception,
        );
      return this.#read(headers[":event-type"] ?? "", json);
    });
  }

  #read(type: string, json: JsonFields): readonly StreamPart[] {
    const chunks = this.#chunks;
    const place = asNumber(json["contentBlockIndex"]) ?? 0;
    switch (type) {
      case "messageStart":
        return [chunks.delta({ role: "assistant", content: "" })];
      case "contentBlockStart": {
        const call = asObject(asRecord(json["start"])["toolUse"]);
        if (call === undefined) return [];
        const index = this.#calls.size;
        this.#calls.set(place, index);
        return [chunks.callStart(index, asString(call["toolUseId"]) ?? "", asString(call["name"]) ?? "")];
      }
      case "contentBlockDelta": {
        const delta = asRecord(json["delta"]);
        const text = asString(delta["text"]);
        if (text !== undefined) return [chunks.delta({ content: text })];
        const reasoning = asString(asRecord(delta["reasoningContent"])["text"]);
        if (reasoning !== undefined) return [chunks.delta({ reasoning_content: reasoning })];
        const input = asString(asRecord(delta["toolUse"])["input"]);
        return input === undefined ? [] : [chunks.callArguments(this.#calls.get(place) ?? 0, input)];
      }
      case "messageStop":
        return [chunks.delta({}, finishReasonOf(json["stopReason"]))];
      case "metadata":
        this.#isComplete = true;
        return [chunks.usage(usageOf(asRecord(json["usage"])))];
      default:
        return [];
    }
  }
}
