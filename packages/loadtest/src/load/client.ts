import { createSseDecoder, isRecord } from "@octavo/protocol";
import { type Dispatcher, errors, request } from "undici";
import type { LoadCase } from "../datasets/dataset.js";
import type { RequestFailure, RequestOutcome } from "./outcome.js";

export interface TargetSpec {
  /** Up to and including the version segment, e.g. "http://127.0.0.1:8000/v1". */
  readonly baseUrl: string;
  readonly endpoint: "completions" | "chat";
  readonly model: string;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
  readonly dispatcher: Dispatcher;
  readonly temperature: number;
  /** Merged into every body (`--extra-body`). */
  readonly extraBody: Readonly<Record<string, unknown>>;
}

/** Sends one streaming request and times every piece of its answer. Never rejects: failures are outcomes. */
export async function send(
  target: TargetSpec,
  item: LoadCase,
  index: number,
  scheduledMs: number,
): Promise<RequestOutcome> {
  const sentMs = performance.now();
  const pieceMs: number[] = [];
  const usage: { prompt?: number; cached?: number; completion?: number } = {};
  const end = (failure: RequestFailure | undefined): RequestOutcome => ({
    index,
    scheduledMs,
    sentMs,
    endedMs: performance.now(),
    pieceMs,
    promptTokens: usage.prompt,
    cachedTokens: usage.cached,
    completionTokens: usage.completion ?? pieceMs.length,
    failure,
  });
  try {
    const response = await request(
      `${target.baseUrl}${target.endpoint === "chat" ? "/chat/completions" : "/completions"}`,
      {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(target.apiKey === undefined ? {} : { authorization: `Bearer ${target.apiKey}` }),
        },
        body: JSON.stringify(bodyOf(target, item)),
        dispatcher: target.dispatcher,
        headersTimeout: target.timeoutMs,
        bodyTimeout: target.timeoutMs,
        signal: AbortSignal.timeout(target.timeoutMs),
      },
    );
    if (response.statusCode >= 400) {
      const text = (await response.body.text()).slice(0, 300);
      const kind = response.statusCode === 429 || response.statusCode === 503 ? "refused" : "http";
      return end({ kind, message: `${response.statusCode} ${text}` });
    }
    const decoder = createSseDecoder();
    let done = false;
    for await (const chunk of response.body) {
      const now = performance.now();
      for (const event of decoder.push(asBytes(chunk))) {
        if (event.data === "[DONE]") {
          done = true;
          continue;
        }
        const piece = readPiece(event.data);
        if (piece.error !== undefined) return end({ kind: "stream_error", message: piece.error });
        if (piece.hasOutput) pieceMs.push(now);
        if (piece.usage) Object.assign(usage, piece.usage);
      }
    }
    return end(done ? undefined : { kind: "truncated", message: "the stream ended without [DONE]" });
  } catch (thrown) {
    return end(failureOf(thrown));
  }
}

function bodyOf(target: TargetSpec, item: LoadCase): Record<string, unknown> {
  const prompt =
    target.endpoint === "chat"
      ? { messages: typeof item.prompt === "string" ? [{ role: "user", content: item.prompt }] : item.prompt }
      : {
          prompt:
            typeof item.prompt === "string" ? item.prompt : item.prompt.map((m) => m.content).join("\n"),
        };
  return {
    model: target.model,
    ...prompt,
    max_tokens: item.maxTokens,
    ...(item.ignoreEos ? { ignore_eos: true } : {}),
    temperature: target.temperature,
    stream: true,
    stream_options: { include_usage: true },
    ...target.extraBody,
  };
}

interface Piece {
  readonly hasOutput: boolean;
  readonly error?: string;
  readonly usage?: { prompt?: number; cached?: number; completion?: number };
}

function readPiece(data: string): Piece {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch {
    return { hasOutput: false, error: `not JSON: ${data.slice(0, 100)}` };
  }
  const root = record(event);
  if (root["error"] !== undefined && root["error"] !== null) {
    const message = record(root["error"])["message"];
    return { hasOutput: false, error: typeof message === "string" ? message : data.slice(0, 200) };
  }
  const choices = Array.isArray(root["choices"]) ? root["choices"].map(record) : [];
  const hasOutput = choices.some((choice) => {
    const delta = record(choice["delta"]);
    return (
      [choice["text"], delta["content"], delta["reasoning"], delta["reasoning_content"]].some(
        (text) => typeof text === "string" && text !== "",
      ) || Array.isArray(delta["tool_calls"])
    );
  });
  const counts = record(root["usage"]);
  const completion = counts["completion_tokens"];
  if (typeof completion !== "number") return { hasOutput };
  const prompt = counts["prompt_tokens"];
  const cached = record(counts["prompt_tokens_details"])["cached_tokens"];
  return {
    hasOutput,
    usage: {
      completion,
      ...(typeof prompt === "number" ? { prompt } : {}),
      ...(typeof cached === "number" ? { cached } : {}),
    },
  };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function asBytes(chunk: unknown): Uint8Array {
  return chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk));
}

function failureOf(thrown: unknown): RequestFailure {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const timedOut =
    thrown instanceof errors.HeadersTimeoutError ||
    thrown instanceof errors.BodyTimeoutError ||
    (thrown instanceof Error && thrown.name === "TimeoutError");
  return { kind: timedOut ? "timeout" : "connection", message };
}
