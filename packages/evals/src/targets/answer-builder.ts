import {
  asArray,
  asNumber,
  asRecord,
  asString,
  createSseDecoder,
  parseJson,
  type ServingRecordInfo,
} from "@octavo/protocol";
import type { AnsweredToken, AnsweredToolCall, AnswerUsage } from "../answers/answer.js";
import type { BodyReader } from "../http/openai-server.js";
import { serverFailure, failureOfEvent, type ServerFailure } from "../http/server-failure.js";

interface CallPieces {
  id: string;
  name: string;
  readonly arguments: string[];
}

/** Reads a chat completion: a stream of events, or the whole of it as JSON, as the server chose to send it. */
export class AnswerBuilder implements BodyReader {
  readonly #startMs: number;
  readonly #decoder = createSseDecoder();
  readonly #isStream: boolean;
  readonly #body: Uint8Array[] = [];
  readonly #text: string[] = [];
  readonly #reasoning: string[] = [];
  readonly #calls: CallPieces[] = [];
  readonly pieceMs: number[] = [];
  logitsDigests: readonly string[] | undefined;
  /** Empty where no logprobs were given. */
  readonly tokens: AnsweredToken[] = [];
  model: string | undefined;
  responseId: string | undefined;
  finishReason: string | undefined;
  usage: AnswerUsage = { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined };
  serving: ServingRecordInfo | undefined;
  failure: ServerFailure | undefined;
  /** When `[DONE]` came, or an error event, on the clock of `performance.now()`. */
  endedMs: number | undefined;

  constructor(startMs: number, contentType: string | undefined) {
    this.#startMs = startMs;
    this.#isStream = /^\s*text\/event-stream\b/i.test(contentType ?? "");
  }

  get isDone(): boolean {
    return this.endedMs !== undefined;
  }

  push(chunk: Uint8Array): void {
    if (!this.#isStream) {
      this.#body.push(chunk);
      return;
    }
    const nowMs = performance.now();
    for (const event of this.#decoder.push(chunk)) {
      if (this.isDone) return;
      this.#readEvent(event.data, nowMs);
    }
  }

  /** Call when the body has ended: what is missing is a failure. */
  finish(): void {
    if (this.isDone) return;
    if (this.#isStream) {
      this.failure ??= serverFailure("truncated", "the stream ended without [DONE]");
      return;
    }
    const text = Buffer.concat(this.#body).toString("utf8");
    const parsed = parseJson(text);
    const root = asRecord(parsed?.value);
    this.failure = failureOfEvent(root);
    if (this.failure !== undefined) return;
    if (!Array.isArray(root["choices"])) {
      const message = `the answer is not a chat completion: ${text.slice(0, 100)}`;
      this.failure = serverFailure("invalid_response", message, false);
      return;
    }
    this.#readCompletion(root, "message", 0);
    this.pieceMs.length = 0;
  }

  get text(): string {
    return this.#text.join("");
  }

  get reasoning(): string | undefined {
    return this.#reasoning.length === 0 ? undefined : this.#reasoning.join("");
  }

  get toolCalls(): readonly AnsweredToolCall[] {
    return this.#calls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments.join("") }));
  }

  #readEvent(data: string, nowMs: number): void {
    if (data.trim() === "[DONE]") {
      this.endedMs = nowMs;
      return;
    }
    const parsed = parseJson(data);
    if (parsed === undefined)
      this.failure = serverFailure("invalid_response", `an event is not JSON: ${data.slice(0, 100)}`, false);
    else this.failure = failureOfEvent(parsed.value);
    if (this.failure !== undefined) this.endedMs = nowMs;
    else this.#readCompletion(asRecord(parsed?.value), "delta", nowMs);
  }

  #readCompletion(root: Readonly<Record<string, unknown>>, part: "delta" | "message", nowMs: number): void {
    this.model ??= asString(root["model"]);
    this.responseId ??= asString(root["id"]);
    const usage = asRecord(root["usage"]);
    if (asNumber(usage["completion_tokens"]) !== undefined || asNumber(usage["prompt_tokens"]) !== undefined)
      this.usage = {
        promptTokens: asNumber(usage["prompt_tokens"]),
        completionTokens: asNumber(usage["completion_tokens"]),
        cachedTokens: asNumber(asRecord(usage["prompt_tokens_details"])["cached_tokens"]),
      };
    const [digests] = asArray(asRecord(root["octavo"])["logits_digests"]);
    if (Array.isArray(digests)) this.logitsDigests = digests.filter((one) => typeof one === "string");
    const serving = asRecord(root["octavo"])["serving_record"];
    if (isServingRecord(serving)) this.serving = serving;
    for (const choice of asArray(root["choices"]).map(asRecord)) {
      if ((asNumber(choice["index"]) ?? 0) !== 0) continue;
      if (this.#readMessage(asRecord(choice[part]))) this.pieceMs.push(nowMs - this.#startMs);
      this.finishReason = asString(choice["finish_reason"]) ?? this.finishReason;
      for (const token of asArray(asRecord(choice["logprobs"])["content"]).map(asRecord)) {
        const logprob = asNumber(token["logprob"]);
        if (logprob !== undefined) this.tokens.push({ text: asString(token["token"]) ?? "", logprob });
      }
    }
  }

  /** Whether there was any output in it. */
  #readMessage(message: Readonly<Record<string, unknown>>): boolean {
    const text = asString(message["content"]) ?? asString(message["refusal"]) ?? "";
    const reasoning = asString(message["reasoning"]) ?? asString(message["reasoning_content"]) ?? "";
    if (text !== "") this.#text.push(text);
    if (reasoning !== "") this.#reasoning.push(reasoning);
    const calls = asArray(message["tool_calls"]).map(asRecord);
    for (const [position, call] of calls.entries()) this.#readCall(call, position);
    return text !== "" || reasoning !== "" || calls.length > 0;
  }

  /** Pieces of a call carry its index; servers that leave it out send a call whole, or begin it with its id. */
  #readCall(call: Readonly<Record<string, unknown>>, position: number): void {
    const func = asRecord(call["function"]);
    const id = asString(call["id"]);
    const index = asNumber(call["index"]);
    const isNew = index === undefined && (id !== undefined || this.#calls.length <= position);
    const at = isNew ? this.#calls.length : (index ?? this.#calls.length - 1);
    if (!Number.isInteger(at) || at < 0 || at > 1024) return;
    while (this.#calls.length <= at) this.#calls.push({ id: "", name: "", arguments: [] });
    const own = this.#calls[at]!;
    own.id ||= id ?? "";
    own.name ||= asString(func["name"]) ?? "";
    const pieces = func["arguments"];
    if (typeof pieces === "string") own.arguments.push(pieces);
    else if (pieces !== undefined && pieces !== null) own.arguments.push(JSON.stringify(pieces));
  }
}

function isServingRecord(value: unknown): value is ServingRecordInfo {
  const record = asRecord(value);
  return (
    typeof record["request_id"] === "string" &&
    ["queue_ms", "e2e_ms", "cached_tokens", "cache_hit_ratio", "preemptions", "recomputed_tokens"].every(
      (name) => typeof record[name] === "number",
    ) &&
    ["gaps", "batch_size", "shared_prefill_tokens"].every((name) => typeof record[name] === "object")
  );
}
