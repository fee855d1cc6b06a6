import type { LlmRequestFacts } from "../span/llm-span.js";
import type { CallKind } from "./call-kind.js";
import { defined, type Fields, fieldsOf, numberOf, textOf } from "./fields.js";

/** Facts of a request body, as far as it is well-formed. */
export function requestFacts(kind: CallKind, body: Fields): LlmRequestFacts {
  const { stop } = body;
  return defined<LlmRequestFacts>({
    model: textOf(body["model"]),
    stream: body["stream"] === true ? true : undefined,
    temperature: numberOf(body["temperature"]),
    topP: numberOf(body["top_p"]),
    topK: numberOf(body["top_k"]),
    maxTokens: numberOf(body["max_completion_tokens"] ?? body["max_output_tokens"] ?? body["max_tokens"]),
    frequencyPenalty: numberOf(body["frequency_penalty"]),
    presencePenalty: numberOf(body["presence_penalty"]),
    seed: numberOf(body["seed"]),
    stopSequences: typeof stop === "string" ? [stop] : stringsOf(stop),
    choiceCount: numberOf(body["n"]),
    outputType: outputType(body),
    encodingFormats: kind === "embeddings" ? wrapped(textOf(body["encoding_format"])) : undefined,
    conversationId: textOf(body["conversation"]) ?? textOf(fieldsOf(body["conversation"])?.["id"]),
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
function outputType(body: Fields): "text" | "json" | undefined {
  const format = fieldsOf(body["response_format"]) ?? fieldsOf(fieldsOf(body["text"])?.["format"]);
  const type = textOf(format?.["type"]);
  if (type === "json_object" || type === "json_schema") return "json";
  return type === "text" ? "text" : undefined;
}
