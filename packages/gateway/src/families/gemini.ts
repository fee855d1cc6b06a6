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
import { type ChatPart, type ChatTurn, readChatRequest } from "./chat-request.js";
import type { StreamPart, StreamReader, WireCall, WireFamily } from "./family.js";
import { streamError } from "./openai.js";

/** Google's `generateContent`, v1beta. Its streams are server-sent events where `alt=sse` asks for them. */
export const geminiFamily: WireFamily = {
  operations: ["chat"],
  streamType: "text/event-stream",
  request: (call) => ({
    path: `${call.basePath}/models/${encodeURIComponent(call.model)}:${call.isStream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(generateRequestOf(call)),
  }),
  answer: (json, call) => {
    const answer = readAnswer(json);
    return chatAnswer({
      ...answer,
      id: answer.id,
      model: answer.model === "" ? call.model : answer.model,
      calls: answer.calls.map((one, index) => ({ ...one, id: callId(answer.id, index) })),
      finishReason: answer.finishReason ?? "stop",
    });
  },
  reader: (call, { maxEventBytes }) => new GeminiReader(call, maxEventBytes),
  error: (json) => {
    // an array of one where a stream was asked for
    const error = asRecord(asRecord(Array.isArray(json) ? json[0] : json)["error"]);
    return { message: asString(error["message"]), type: asString(error["status"]) };
  },
};

function generateRequestOf({ fields }: WireCall): JsonFields {
  const request = readChatRequest(fields);
  const { tools, toolChoice, jsonSchema } = request;
  const names = new Map(
    request.turns.flatMap(({ calls }) => calls.map(({ id, name }) => [id, name] as const)),
  );
  const config = {
    ...(request.maxTokens !== undefined && { maxOutputTokens: request.maxTokens }),
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.topP !== undefined && { topP: request.topP }),
    ...(request.stop.length > 0 && { stopSequences: request.stop }),
    ...(typeof fields["seed"] === "number" && { seed: fields["seed"] }),
    ...(jsonSchema !== undefined && { responseMimeType: "application/json" }),
    ...(typeof jsonSchema === "object" && { responseJsonSchema: jsonSchema }),
  };
  return {
    contents: request.turns.map((turn) => contentOf(turn, names)),
    ...(request.system.length > 0 && {
      systemInstruction: { parts: [{ text: request.system.join("\n\n") }] },
    }),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
    ...(tools.length > 0 && {
      tools: [
        {
          functionDeclarations: tools.map(({ name, description, schema }) => ({
            name,
            ...(description !== undefined && { description }),
            parametersJsonSchema: schema,
          })),
        },
      ],
    }),
    ...(tools.length > 0 && toolChoice !== undefined && { toolConfig: toolConfigOf(toolChoice) }),
  };
}

function toolConfigOf(choice: "auto" | "none" | "required" | { readonly name: string }): JsonFields {
  const named = typeof choice === "object";
  const mode = named || choice === "required" ? "ANY" : choice.toUpperCase();
  return { functionCallingConfig: { mode, ...(named && { allowedFunctionNames: [choice.name] }) } };
}

function contentOf(
  { role, parts, calls, callId: id }: ChatTurn,
  names: ReadonlyMap<string, string>,
): JsonFields {
  if (role === "tool") {
    const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
    const parsed = asObject(parseJson(text)?.value);
    const response = { name: names.get(id ?? "") ?? id ?? "", response: parsed ?? { result: text } };
    return { role: "user", parts: [{ functionResponse: response }] };
  }
  return {
    role: role === "assistant" ? "model" : "user",
    parts: [
      ...parts.map(partOf),
      ...calls.map(({ name, input }) => ({ functionCall: { name, args: input } })),
    ],
  };
}

function partOf(part: ChatPart): JsonFields {
  if (part.type === "text") return { text: part.text };
  if (part.type === "image") return { inlineData: { mimeType: part.mediaType, data: part.base64 } };
  return { fileData: { fileUri: part.url } };
}

interface ReadAnswer {
  readonly id: string;
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finishReason: WireFinishReason | undefined;
  readonly usage: TranslatedUsage;
}

/** A whole answer and an event of a stream have one shape. */
function readAnswer(json: JsonFields): ReadAnswer {
  const [candidate] = asObjects(json["candidates"]);
  const parts = asObjects(asRecord(candidate?.["content"])["parts"]);
  const calls = parts.flatMap(({ functionCall }) => {
    const call = asObject(functionCall);
    return call === undefined
      ? []
      : [{ name: asString(call["name"]) ?? "", arguments: JSON.stringify(call["args"] ?? {}) }];
  });
  const textOf = (isThought: boolean): string =>
    parts
      .map((part) => ((part["thought"] === true) === isThought ? (asString(part["text"]) ?? "") : ""))
      .join("");
  const isBlocked = asRecord(json["promptFeedback"])["blockReason"] !== undefined;
  return {
    id: asString(json["responseId"]) ?? "",
    model: asString(json["modelVersion"]) ?? "",
    text: textOf(false),
    reasoning: textOf(true),
    calls,
    finishReason: isBlocked
      ? "content_filter"
      : finishReasonOf(candidate?.["finishReason"], calls.length > 0),
    usage: usageOf(asRecord(json["usageMetadata"])),
  };
}

function finishReasonOf(reason: unknown, hasCalls: boolean): WireFinishReason | undefined {
  if (reason === undefined || reason === null) return undefined;
  if (reason === "STOP") return hasCalls ? "tool_calls" : "stop";
  return reason === "MAX_TOKENS" ? "length" : "content_filter";
}

/** Their candidates' tokens leave out the thoughts'. */
function usageOf(usage: JsonFields): TranslatedUsage {
  const thoughts = asNumber(usage["thoughtsTokenCount"]);
  return {
    promptTokens: asNumber(usage["promptTokenCount"]) ?? 0,
    cachedTokens: asNumber(usage["cachedContentTokenCount"]) ?? 0,
    completionTokens: (asNumber(usage["candidatesTokenCount"]) ?? 0) + (thoughts ?? 0),
    reasoningTokens: thoughts,
  };
}

/** Their calls have no ids. */
function callId(answerId: string, index: number): string {
  return `call_${answerId.replaceAll(/\W/g, "").slice(0, 24)}_${index}`;
}

/** The stream ends where the connection does, after an event with a finish reason. */
class GeminiReader implements StreamReader {
  readonly #splitter: SseSplitter;
  readonly #chunks: ChunkMaker;
  #numCalls = 0;
  #hasStarted = false;
  #isComplete = false;

  constructor(call: WireCall, maxEventBytes: number) {
    this.#splitter = new SseSplitter(maxEventBytes);
    this.#chunks = new ChunkMaker(call.model);
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  push(chunk: Buffer): readonly StreamPart[] {
    return this.#splitter.push(chunk).flatMap(({ data }) => {
      const json = asObject(parseJson(data)?.value);
      if (json === undefined)
        throw new OctavoError("target_answer_invalid", "the target sent an event that is not a JSON object");
      if (json["error"] !== undefined) throw streamError(json);
      return this.#read(readAnswer(json));
    });
  }

  #read(answer: ReadAnswer): readonly StreamPart[] {
    const chunks = this.#chunks;
    const parts: StreamPart[] = [];
    if (answer.id !== "") chunks.id = answer.id;
    if (answer.model !== "") chunks.model = answer.model;
    if (!this.#hasStarted) parts.push(chunks.delta({ role: "assistant", content: "" }));
    this.#hasStarted = true;
    if (answer.reasoning !== "") parts.push(chunks.delta({ reasoning_content: answer.reasoning }));
    if (answer.text !== "") parts.push(chunks.delta({ content: answer.text }));
    for (const call of answer.calls) {
      const index = this.#numCalls++;
      parts.push(chunks.callStart(index, callId(chunks.id, index), call.name));
      parts.push(chunks.callArguments(index, call.arguments));
    }
    if (answer.finishReason !== undefined && !this.#isComplete) {
      this.#isComplete = true;
      const reason =
        this.#numCalls > 0 && answer.finishReason === "stop" ? "tool_calls" : answer.finishReason;
      parts.push(chunks.delta({}, reason), chunks.usage(answer.usage));
    }
    return parts;
  }
}
