import { OctavoError } from "@octavo/protocol/errors";
import type { ServingRecordInfo } from "@octavo/protocol";
import { createSseDecoder } from "@octavo/protocol/sse";
import type { ChatTarget } from "./chat-target.js";

export interface AskedCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** One turn of a conversation, as the wire has it. */
export interface TerminalTurn {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly tool_calls?: readonly AskedCall[];
  readonly tool_call_id?: string;
}

/** Beside `model` and `messages`: sampling parameters and tools, in the wire's names. */
export type ChatFields = Readonly<Record<string, unknown>>;

export interface AskedAnswer {
  readonly turn: TerminalTurn;
  readonly finishReason: string | undefined;
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** From sending the request. */
  readonly firstTokenMs: number | undefined;
  readonly totalMs: number;
  /** Octavo servers only. */
  readonly record: ServingRecordInfo | undefined;
}

interface Delta {
  readonly content?: string | null;
  readonly reasoning?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly id?: string;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: Delta; readonly finish_reason?: string | null }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
  readonly octavo?: { readonly serving_record?: ServingRecordInfo };
  readonly error?: { readonly message?: string };
}

/**
 * Sends a conversation and hands out the answer's text as it comes; one that breaks off ends with a line feed.
 * @throws OctavoError `target_unreachable`, `invalid_request` with the server's words, `request_cancelled`
 */
export async function askStreaming(
  target: ChatTarget,
  messages: readonly TerminalTurn[],
  fields: ChatFields,
  onText: (text: string, kind: "content" | "reasoning") => void,
  signal: AbortSignal,
): Promise<AskedAnswer> {
  const started = performance.now();
  const body = {
    model: target.model,
    messages,
    ...fields,
    stream: true,
    stream_options: { include_usage: true },
    ...(target.isOctavo && { octavo: { include_serving_record: true } }),
  };
  const response = await fetch(`${target.baseUrl}/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(target.apiKey !== undefined && { authorization: `Bearer ${target.apiKey}` }),
    },
    body: JSON.stringify(body),
    signal,
  }).catch(rethrow(signal, `no server answers at ${target.baseUrl}`));
  if (!response.ok || response.body === null) throw refusalOf(response.status, await response.text());

  const decoder = createSseDecoder();
  const calls: { id: string; name: string; arguments: string }[] = [];
  let content = "";
  let finishReason: string | undefined;
  let usage: Chunk["usage"];
  let record: ServingRecordInfo | undefined;
  let firstTokenMs: number | undefined;
  const read = (chunk: Chunk): void => {
    if (chunk.error !== undefined)
      throw new OctavoError("invalid_request", `the server ended the answer: ${chunk.error.message ?? "?"}`);
    usage = chunk.usage ?? usage;
    record = chunk.octavo?.serving_record ?? record;
    const { delta, finish_reason: reason } = chunk.choices?.[0] ?? {};
    finishReason = reason ?? finishReason;
    if (delta === undefined) return;
    const reasoning = delta.reasoning ?? delta.reasoning_content ?? "";
    const text = delta.content ?? "";
    if (reasoning !== "" || text !== "" || delta.tool_calls !== undefined)
      firstTokenMs ??= performance.now() - started;
    if (reasoning !== "") onText(reasoning, "reasoning");
    if (text !== "") onText(text, "content");
    content += text;
    for (const { index = 0, id = "", function: call = {} } of delta.tool_calls ?? []) {
      const entry = (calls[index] ??= { id: "", name: "", arguments: "" });
      entry.id ||= id;
      entry.name += call.name ?? "";
      entry.arguments += call.arguments ?? "";
    }
  };
  try {
    for await (const bytes of response.body)
      for (const { data } of decoder.push(bytes)) if (data !== "[DONE]") read(JSON.parse(data) as Chunk);
  } catch (cause) {
    // what is said of it begins a new line
    if (firstTokenMs !== undefined) onText("\n", content === "" ? "reasoning" : "content");
    if (cause instanceof OctavoError) throw cause;
    rethrow(signal, "the connection was lost in the middle of the answer")(cause);
  }
  return {
    turn: {
      role: "assistant",
      content,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, ...call }) => ({ id, type: "function" as const, function: call })),
      }),
    },
    finishReason,
    promptTokens: usage?.prompt_tokens,
    outputTokens: usage?.completion_tokens,
    firstTokenMs,
    totalMs: performance.now() - started,
    record,
  };
}

function rethrow(signal: AbortSignal, message: string): (cause: unknown) => never {
  return (cause) => {
    if (signal.aborted) throw new OctavoError("request_cancelled", "the answer was stopped", { cause });
    throw new OctavoError("target_unreachable", message, { cause });
  };
}

function refusalOf(status: number, text: string): OctavoError {
  let message = text.slice(0, 400);
  try {
    message = (JSON.parse(text) as Chunk).error?.message ?? message;
  } catch {
    // Not JSON: its text says more than nothing.
  }
  return new OctavoError("invalid_request", `the server answers ${status}: ${message}`);
}
