import { asNumber, asObject, asString, definedFields, type JsonFields } from "@octavo/protocol";
import type { LlmRequestFacts } from "../span/llm-span.js";
import type { CallKind } from "./call-kind.js";

/** Facts of a request body, as far as it is well-formed. */
export function requestFacts(kind: CallKind, body: JsonFields): LlmRequestFacts {
  const { stop } = body;
  return definedFields({
    model: asString(body["model"]),
    stream: body["stream"] === true ? true : undefined,
    temperature: asNumber(body["temperature"]),
    topP: asNumber(body["top_p"]),
    topK: asNumber(body["top_k"]),
    maxTokens: asNumber(body["max_completion_tokens"] ?? body["max_output_tokens"] ?? body["max_tokens"]),
    frequencyPenalty: asNumber(body["frequency_penalty"]),
    presencePenalty: asNumber(body["presence_penalty"]),
    seed: asNumber(body["seed"]),
    stopSequences: typeof stop === "string" ? [stop] : stringsOf(stop),
    choiceCount: asNumber(body["n"]),
    outputType: outputType(body),
    encodingFormats: kind === "embeddings" ? wrapped(asString(body["encoding_format"])) : undefined,
    conversationId: asString(body["conversation"]) ?? asString(asObject(body["conversation"])?.["id"]),
  });
}

function stringsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string")
    ? value
    : undefined;
}

function wrapped(value: string | undefined): readonly string[] | undefined {
  return value === undefined ? undefined : [value];
}

/** Only where the request says it. */
function outputType(body: JsonFields): "text" | "json" | undefined {
  const format = asObject(body["response_format"]) ?? asObject(asObject(body["text"])?.["format"]);
  const type = asString(format?.["type"]);
  if (type === "json_object" || type === "json_schema") return "json";
  return type === "text" ? "text" : undefined;
}
