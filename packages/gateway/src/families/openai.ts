import { asObject, asRecord, asString, type JsonFields, OctavoError, parseJson } from "@octavo/protocol";
import type { Operation } from "../exchange/exchange.js";
import { SseSplitter } from "../relay/sse-splitter.js";
import type { StreamPart, StreamReader, WireCall, WireFamily } from "./family.js";

const paths: Readonly<Record<Operation, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  embeddings: "/embeddings",
  responses: "/responses",
  messages: "/messages",
  rerank: "/rerank",
  score: "/score",
};

const jsonHeaders = { "content-type": "application/json" };

/** OpenAI's own format: what came is what goes, but for the model's name. */
export const openaiFamily: WireFamily = {
  operations: Object.keys(paths) as Operation[],
  streamType: "text/event-stream",
  request: (call) => ({
    path: call.basePath + paths[call.operation],
    headers: jsonHeaders,
    body: withModel(call),
  }),
  answer: (json) => json,
  reader: (_, { maxEventBytes }) => new OpenAIStreamReader(maxEventBytes),
  error: openaiError,
};

/** Azure's: the deployment is in the path, the version in the query. */
export const azureFamily: WireFamily = {
  ...openaiFamily,
  operations: ["chat", "completions", "embeddings"],
  request: (call) => ({
    path: `${call.basePath}/${encodeURIComponent(call.model)}${paths[call.operation]}?api-version=${encodeURIComponent(call.apiVersion ?? "2024-10-21")}`,
    headers: jsonHeaders,
    body: withModel(call),
  }),
};

/** The bytes as they came where the model's name is the same, or stands once and can be replaced where it stands. */
function withModel({ bytes, fields, model }: WireCall): Buffer | string {
  if (bytes === undefined) return JSON.stringify({ ...fields, model });
  if (fields["model"] === model) return bytes;
  const text = bytes.toString("utf8");
  const old = JSON.stringify(fields["model"]);
  const [first, second] = [...text.matchAll(modelField)].slice(0, 2);
  // a second one may belong to a message or a tool; only the whole parse knows
  if (first === undefined || second !== undefined || first[1] !== old)
    return JSON.stringify({ ...fields, model });
  const at = first.index + first[0].length - old.length;
  return text.slice(0, at) + JSON.stringify(model) + text.slice(at + old.length);
}

const modelField = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/g;

/** Follows a stream of chunks, or of the typed events of `/responses` and `/messages`. */
export class OpenAIStreamReader implements StreamReader {
  readonly #splitter: SseSplitter;
  #isComplete = false;

  constructor(maxEventBytes: number) {
    this.#splitter = new SseSplitter(maxEventBytes);
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  push(chunk: Buffer): readonly StreamPart[] {
    const parts: StreamPart[] = [];
    for (const { raw, data } of this.#splitter.push(chunk)) {
      if (data === "[DONE]") {
        this.#isComplete = true;
        continue;
      }
      const json = asObject(parseJson(data)?.value);
      if (json === undefined)
        throw new OctavoError("target_answer_invalid", "the target sent an event that is not a JSON object");
      const error = json["error"];
      if (error !== undefined && error !== null) throw streamError(json);
      const type = json["type"];
      if (typeof type === "string" && finalTypes.has(type)) this.#isComplete = true;
      parts.push({ raw, json });
    }
    return parts;
  }
}

const finalTypes: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "message_stop",
]);

/** What a target says in an error event: an error of the request is the client's, any other is the target's. */
export function streamError(json: JsonFields): OctavoError {
  const { message, type } = openaiError(json);
  const status = Number(asRecord(json["error"])["code"] ?? asRecord(json["error"])["status"]);
  const code =
    status === 429 || /rate_?limit/i.test(type ?? "")
      ? "target_rate_limited"
      : status >= 400 && status < 500
        ? "target_rejected"
        : "target_failed";
  return new OctavoError(code, message ?? "the target sent an error");
}

export function openaiError(json: unknown): {
  readonly message: string | undefined;
  readonly type: string | undefined;
} {
  const body = asRecord(json);
  const error = body["error"];
  if (typeof error === "string") return { message: error, type: undefined };
  const fields = asObject(error) ?? body;
  return {
    message: asString(fields["message"]) ?? asString(fields["detail"]),
    type: asString(fields["type"]),
  };
}
