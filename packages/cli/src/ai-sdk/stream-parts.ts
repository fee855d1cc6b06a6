import type {
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3Warning,
} from "@ai-sdk/provider";
import type { ChatDelta, UsageInfo } from "@octavo/protocol";
import type { WirePart } from "./model-source.js";

interface OpenCall {
  readonly id: string;
  readonly name: string;
  text: string;
}

/** The SDK's stream of an answer's parts. An error in the middle becomes a part of it, after which it ends. */
export async function* streamParts(
  parts: AsyncIterable<WirePart>,
  warnings: SharedV3Warning[],
): AsyncGenerator<LanguageModelV3StreamPart, void, undefined> {
  yield { type: "stream-start", warnings };
  let block: { readonly kind: "text" | "reasoning"; readonly id: string } | undefined;
  let numBlocks = 0;
  let isIdentified = false;
  let finishReason: string | undefined;
  let usage: UsageInfo | undefined;
  let octavo: WirePart["octavo"];
  const calls: OpenCall[] = [];
  let open: OpenCall | undefined;

  const closeBlock = function* (): Generator<LanguageModelV3StreamPart> {
    if (block !== undefined) yield { type: `${block.kind}-end`, id: block.id };
    block = undefined;
  };
  const closeCall = function* (): Generator<LanguageModelV3StreamPart> {
    if (open === undefined) return;
    const { id, name, text } = open;
    yield { type: "tool-input-end", id };
    yield { type: "tool-call", toolCallId: id, toolName: name, input: text === "" ? "{}" : text };
    open = undefined;
  };
  const write = function* (kind: "text" | "reasoning", delta = ""): Generator<LanguageModelV3StreamPart> {
    if (delta === "") return;
    if (block?.kind !== kind) {
      yield* closeBlock();
      block = { kind, id: String((numBlocks += 1)) };
      yield { type: `${kind}-start`, id: block.id };
    }
    yield { type: `${kind}-delta`, id: block.id, delta };
  };
  const call = function* (
    part: NonNullable<ChatDelta["tool_calls"]>[number],
  ): Generator<LanguageModelV3StreamPart> {
    if (calls[part.index] === undefined) {
      yield* closeBlock();
      yield* closeCall();
      open = { id: part.id ?? `call-${part.index}`, name: part.function?.name ?? "", text: "" };
      calls[part.index] = open;
      yield { type: "tool-input-start", id: open.id, toolName: open.name };
    }
    const text = part.function?.arguments ?? "";
    if (open === undefined || text === "") return;
    open.text += text;
    yield { type: "tool-input-delta", id: open.id, delta: text };
  };

  try {
    for await (const part of parts) {
      if (!isIdentified && part.id !== undefined) {
        isIdentified = true;
        const { id, model } = part;
        const timestamp = new Date();
        yield { type: "response-metadata", id, timestamp, ...(model !== undefined && { modelId: model }) };
      }
      const { delta } = part;
      yield* write("reasoning", delta?.reasoning ?? delta?.reasoning_content);
      yield* write("text", delta?.content);
      for (const each of delta?.tool_calls ?? []) yield* call(each);
      finishReason = part.finishReason ?? finishReason;
      usage = part.usage ?? usage;
      octavo = part.octavo ?? octavo;
    }
    yield* closeBlock();
    yield* closeCall();
  } catch (error) {
    yield* closeBlock();
    yield { type: "error", error };
    finishReason = "error";
  }
  yield {
    type: "finish",
    finishReason: finishReasonOf(finishReason, calls.length > 0),
    usage: usageOf(usage),
    ...(octavo !== undefined && { providerMetadata: { octavo } }),
  };
}

/** The whole of a stream. Throws what its error part holds. */
export async function collectParts(
  stream: AsyncIterable<LanguageModelV3StreamPart>,
): Promise<LanguageModelV3GenerateResult> {
  const content: LanguageModelV3Content[] = [];
  const result: LanguageModelV3GenerateResult = {
    content,
    finishReason: finishReasonOf(undefined, false),
    usage: usageOf(undefined),
    warnings: [],
  };
  for await (const part of stream)
    if (part.type === "error") throw part.error;
    else if (part.type === "stream-start") result.warnings = part.warnings;
    else if (part.type === "tool-call") content.push(part);
    else if (part.type === "text-start") content.push({ type: "text", text: "" });
    else if (part.type === "reasoning-start") content.push({ type: "reasoning", text: "" });
    else if (part.type === "text-delta" || part.type === "reasoning-delta") {
      const last = content.at(-1);
      if (last?.type === "text" || last?.type === "reasoning") last.text += part.delta;
    } else if (part.type === "response-metadata") {
      const { type: _, ...response } = part;
      result.response = response;
    } else if (part.type === "finish") {
      const { type: _, ...rest } = part;
      Object.assign(result, rest);
    }
  return result;
}

function finishReasonOf(raw: string | undefined, hasCalls: boolean): LanguageModelV3FinishReason {
  const known = { length: "length", content_filter: "content-filter", error: "error" } as const;
  const isEnd = raw === "stop" || raw === "tool_calls";
  const unified = isEnd && hasCalls ? "tool-calls" : raw === "stop" ? "stop" : undefined;
  return { unified: unified ?? known[raw as keyof typeof known] ?? "other", raw };
}

function usageOf(usage: UsageInfo | undefined): LanguageModelV3Usage {
  const total = usage?.prompt_tokens;
  const cacheRead = usage?.prompt_tokens_details?.cached_tokens;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens;
  const output = usage?.completion_tokens;
  return {
    inputTokens: {
      total,
      noCache: total === undefined ? undefined : total - (cacheRead ?? 0),
      cacheRead,
      cacheWrite: undefined,
    },
    outputTokens: {
      total: output,
      text: output === undefined ? undefined : output - (reasoning ?? 0),
      reasoning,
    },
  };
}
